"""Published weights, under the publisher's tensor names: from local files or from a hub.

These files are untrusted. Only tensors are read from pickles, and none of their code runs.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from ..errors import DataError
from ..files import download_model
from ..reading.torch_files import named_tensors, read_torch_file
from ..recipe.weight_files import EXPECTED, INDEX, weight_files
from .weights import read_tensors

PARALLEL = "module."  # prefix of all names if the model was saved inside torch's DataParallel


class PublishedWeights(UserDict[str, Tensor]):
    """Tensors by their publisher's names, as parts see them.

    source  the path or hub name in the recipe
    read    names of the tensors that were read, and count as used
    """

    def __init__(self, source: str, tensors: Mapping[str, Tensor]) -> None:
        super().__init__(tensors)
        self.source, self.read = source, set[str]()

    def __getitem__(self, name: str) -> Tensor:
        self.read.add(name)
        return self.data[name]

    @property
    def left_over(self) -> list[str]:
        """Names of the tensors that were not read, in order."""
        return [name for name in self.data if name not in self.read]


def read_published(source: str) -> PublishedWeights:
    """Load the weights of a path or a hub name. Raises DataError for files that are missing, damaged, or without named
    tensors; UnavailableError for what the hub does not give."""
    files = weight_files(source)
    tensors: dict[str, Tensor] = {}
    for path in _of_hub(source) if files is None else files:
        tensors |= _read_file(path)
    if tensors and all(name.startswith(PARALLEL) for name in tensors):
        tensors = {name.removeprefix(PARALLEL): tensor for name, tensor in tensors.items()}
    return PublishedWeights(source, tensors)


def _read_file(path: Path) -> dict[str, Tensor]:
    content = read_tensors(path)[0] if path.suffix == ".safetensors" else read_torch_file(path)
    if not (tensors := named_tensors(content, path)):
        raise DataError(f"{path}: contains no named tensors; {EXPECTED}")
    return tensors


def _of_hub(name: str) -> list[Path]:
    """The files of a hub name, downloaded if they are not in the cache: safetensors, or else pickles. Raises
    UnavailableError."""
    folder = Path()
    for ending in ("*.safetensors", "*.bin"):
        folder = Path(download_model(name, files=[ending, ending + INDEX]))
        if any(folder.glob(ending)):
            break
    return weight_files(str(folder)) or []
