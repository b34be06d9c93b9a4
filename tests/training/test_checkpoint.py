"""Files of weights: equal byte by byte, older ones can be read, and a killed writer leaves nothing behind."""

import pytest
import torch
from kit import toys
from kit.training import train_step

from mmgen.errors import RunError
from mmgen.files import clear_partials
from mmgen.storage.weights import write_tensors


def test_what_a_killed_writer_left_is_cleared(tmp_path):
    """A folder in which safetensors was writing a file."""
    unfinished = tmp_path / "steps/s/.checkpoint.safetensors.7.folder.partial"
    unfinished.mkdir(parents=True)
    (unfinished / ".tmpAb12Cd").write_bytes(b"half")
    leftovers = [
        tmp_path / "steps/s" / name for name in ("checkpoint.safetensors", ".tmp", ".tmpfiles", ".tmpx0y1z2.txt")
    ]
    for path in leftovers:
        path.write_text("")
    clear_partials(tmp_path)
    assert sorted((tmp_path / "steps/s").iterdir()) == sorted(leftovers)


@pytest.mark.parametrize("cursor", ["{", '{"done": 1, "micro_batch_size": 4, "last": {}}'])
def test_a_damaged_checkpoint_is_reported(cursor, tmp_path):
    (tmp_path / "s").mkdir()
    write_tensors(tmp_path / "s/checkpoint.safetensors", {"model.x": torch.zeros(1)}, {"cursor": cursor})
    with pytest.raises(
        RunError,
        match=r"s/checkpoint.safetensors: the checkpoint does not fit log.jsonl: .*; delete it to train the step again",
    ):
        train_step(tmp_path / "s", toys.model())
