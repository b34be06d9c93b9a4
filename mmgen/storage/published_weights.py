"""Published weights, under the publisher's tensor names: from local files or from a hub.

These files are untrusted. Only tensors are read from pickles, and none of their code runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from torch import Tensor

from ..errors import DataError, RunError
from ..reading.torch_files import format_problem, named_tensors, read_torch_file
from ..recipe.weight_files import EXPECTED, IN_FOLDERS, INDEX, names_in_index, weight_files
from .weights import read_tensors

PARALLEL = "module."  # prefix of all names if the model was saved inside torch's DataParallel


class PublishedWeights(Mapping[str, Tensor]):
    """Tensors by their publisher's names, as parts see them.

    source  the path or hub name in the recipe
    read    names of the tensors that were read, and count as used
    """

    def __init__(self, source: str, tensors: Mapping[str, Tensor]) -> None:
        self.source = source
        self.read: set[str] = set()
        self._tensors = dict(tensors)
        self._names = {id(tensor): name for name, tensor in self._tensors.items()}

    def __getitem__(self, name: str) -> Tensor:
        """Raises DataError for a sparse or quantised tensor, or one without data."""
        tensor = self._tensors[name]
        if problem := format_problem(tensor):
            raise DataError(f"'{self.source}': '{name}' is {problem}; use weights saved as dense, unquantised tensors")
        self.read.add(name)
        return tensor

    def __contains__(self, name: object) -> bool:  # a look at a name does not count as a use
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def name_of(self, tensor: Tensor) -> str | None:
        """The name of a tensor; None for a tensor computed from others."""
        return self._names.get(id(tensor))

    @property
    def left_over(self) -> list[str]:
        """Names of the tensors that were not read, in order."""
        return [name for name in self._tensors if name not in self.read]


def read_published(source: str) -> PublishedWeights:
    """Load the weights of a path or a hub name. Raises DataError for files that are missing, damaged, or without named
    tensors."""
    files = weight_files(source)
    tensors: dict[str, Tensor] = {}
    for path in _of_hub(source) if files is None else files:
        tensors |= _read_file(path)
    if tensors and all(name.startswith(PARALLEL) for name in tensors):
        tensors = {name.removeprefix(PARALLEL): tensor for name, tensor in tensors.items()}
    return PublishedWeights(source, tensors)


def _read_file(path: Path) -> dict[str, Tensor]:
    try:
        content = read_tensors(path)[0] if path.suffix == ".safetensors" else read_torch_file(path)
    except RunError as error:
        raise DataError(str(error)) from None
    if not (tensors := named_tensors(content, path)):
        raise DataError(f"{path}: contains no named tensors; {EXPECTED}")
    return tensors


def _of_hub(name: str) -> list[Path]:
    """The files of a hub name, downloaded if they are not in the cache: safetensors before pickles."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    def fetch(file: str) -> Path:
        return Path(hf_hub_download(name, file))

    last: Exception | None = None
    for file in IN_FOLDERS:
        try:
            path = fetch(file)
            return [fetch(shard) for shard in names_in_index(path)] if file.endswith(INDEX) else [path]
        except DataError:
            raise
        except Exception as error:  # the hub's client and the network raise errors of many kinds
            last = error
            if not isinstance(error, EntryNotFoundError):  # which is also raised offline
                break
    reason = " ".join(str(last).split())[:200] or type(last).__name__
    raise DataError(f"'{name}' cannot be loaded ({reason}); {EXPECTED}, or a hub name and a connection") from None
