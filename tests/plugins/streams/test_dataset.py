"""The data set of archives: the stream by position, what a run makes of it, and what it refuses."""

import json

import pytest
from kit import toys
from kit.toys import mmgen_here as mmgen
from mmgen.data.streams import StreamExamples
from mmgen_streams import Archives, tars

from mmgen.data.sources import DataStream
from mmgen.errors import DataError
from mmgen.storage.weights import read_tensors
from mmgen.testing import DatasetSuite


def keys_of(place):
    test = place.replace("part-{0..2}", "test")
    return {"train": place, "test": test, "columns": {"caption": "caption"}, "targets": "questions"}


def config(place, **keys):
    return Archives(**keys_of(place), **keys)


class TestArchives(DatasetSuite):
    @pytest.fixture(autouse=True)
    def _files(self, captions):
        self.place = captions

    def config(self):
        return Archives(**keys_of(self.place))


def test_positions_go_on_over_archives_and_passes(captions):
    stream = config(captions).build().stream("train")
    order = [f"s{number:02}" for number in range(18)] * 2
    for start in (0, 1, 5, 11, 17, 18, 30):
        examples = stream.read(start)
        assert [next(examples).id for _ in range(36 - start)] == order[start:], start
    examples = StreamExamples(stream)
    assert [examples[position].id for position in (3, 4, 9, 9, 2, 20)] == [
        order[position] for position in (3, 4, 9, 9, 2, 20)
    ]


def test_passes_before_a_position_are_not_read(captions, monkeypatch):
    opened, samples = [], tars.samples
    monkeypatch.setattr(tars, "samples", lambda archive: opened.append(archive) or samples(archive))
    assert next(config(captions).build().stream("train").read(18 * 1000 + 3)).id == "s03"
    assert len(opened) == 4  # three to count a pass, and one to read


def write_recipe(folder, place, *changes):
    text = toys.recipe(
        training={"epochs": None, "updates": 7, "batch_size": 4, "micro_batch_size": 3, "checkpoint_every": 2},
        steps={"first": {"inputs": ["caption"], "train": ["backbone"]}},
        data={"train_size": None, "val_size": None, "test_size": None, "type": "archives", **keys_of(place)},
        metrics={"meaning": {"type": "diversity"}},
    )
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "toy.toml").write_text(text)


@pytest.mark.slow
@pytest.mark.usefixtures("no_page")
def test_a_run_on_a_stream_that_was_stopped_resumes_to_the_bit(captions, tmp_path, monkeypatch):
    for name in ("single", "stopped"):
        (tmp_path / name).mkdir()
        write_recipe(tmp_path / name, captions)
    done = mmgen(tmp_path / "single", "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    assert "data: archives (train a stream, test 1)" in done.stdout

    def stop(stream, examples):
        if any(epoch > 19 for _, epoch in examples):  # in the second pass over the archives
            raise KeyboardInterrupt
        return batch(stream, examples)

    batch = DataStream.batch
    with monkeypatch.context() as patched:
        patched.setattr(DataStream, "batch", stop)
        assert mmgen(tmp_path / "stopped", "run", "toy.toml").returncode != 0
    done = mmgen(tmp_path / "stopped", "run", "toy.toml", "--set", "training.num_workers=2")
    assert done.returncode == 0, done.stderr
    place = "runs/toy/default/seed-0/steps/first"
    weights = [(tmp_path / name / place / "weights.safetensors").read_bytes() for name in ("single", "stopped")]
    assert weights[0] == weights[1]
    assert read_tensors(tmp_path / "single" / place / "weights.safetensors")
    log = [json.loads(line) for line in (tmp_path / "stopped" / place / "log.jsonl").read_text().splitlines()]
    assert len(log) == 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("updates = 7", "epochs = 2"), "training.updates to the number of optimiser updates"),
        (
            ("updates = 7", 'updates = 7\nlr_scheduler = "steps"\nlr_milestones = [1]'),
            'set lr_scheduler = "linear" or "none"',
        ),
        (
            ("updates = 7", "updates = 7\nearly_stopping_patience = 2"),
            "remove this key, and set training.updates to a smaller number",
        ),
    ],
)
def test_what_needs_epochs_is_refused_by_check(captions, tmp_path, change, message):
    write_recipe(tmp_path, captions, change)
    done = mmgen(tmp_path, "check", "toy.toml")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "the data of step 'first' are a stream, which has no epochs; " in done.stderr and message in done.stderr


def test_an_objective_that_draws_another_example_is_refused_in_a_line(captions, tmp_path):
    objective = '[objectives.fits]\ntype = "sentence_image"\n[inputs.second]\ntype = "text"\nfields = ["second"]\n'
    step = '[steps.first]\nobjectives = ["fits"]\nevaluate = false\n'
    inputs = ('inputs = ["caption"]', 'inputs = ["caption", "second"]')
    write_recipe(tmp_path, captions, ("[steps.first]\n", objective + step), inputs)
    done = mmgen(tmp_path, "run", "toy.toml")
    assert done.returncode == 1 and done.stderr.endswith(
        "'fits' draws other examples, which a stream does not have; train this objective on a data set with a length\n"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"questions": ["what?"]}, ": 'a': 'caption' is missing; the fields are questions"),
        ([], ": 'a.json' must be a JSON object"),
    ],
)
def test_fields_that_cannot_be_read(write_tar, tmp_path, content, message):
    place = write_tar(tmp_path / "a.tar", {"a.json": content})
    with pytest.raises(DataError) as error:
        config(place).build().split("train")
    assert str(error.value) == place + message
    for name, problem in (("none.tar", "cannot be read: No such file or directory"), ("x*.tar", "no such file")):
        with pytest.raises(DataError) as error:
            Archives(train=str(tmp_path / name)).build().split("train")
        assert str(error.value) == f"{tmp_path}/{name}: {problem}"
