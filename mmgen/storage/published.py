"""Weights that somebody published, by their publisher's names: of files here, or of a hub.

Strangers wrote these files. Pickles are read as tensors alone, and none of their code runs.
"""

from __future__ import annotations

import hashlib
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import DataError, RunError, regular
from ..recipe.weight_files import IN_FOLDERS, INDEX, WANTED, names_in, weight_files
from .weights import read_tensors

STATES = ("state_dict", "model")  # where files have their tensors that keep more, an optimiser's say
LONGEST_NAME = 500  # letters of what a tensor is called
PARALLEL = "module."  # begins every name of a model that was saved inside of torch's DataParallel


class PublishedWeights(Mapping[str, Tensor]):
    """Tensors by their publisher's names, as parts see them.

    source  what a person called them
    files   the files they are of -> SHA-256
    read    names of the tensors that were looked at: they count as taken
    """

    def __init__(self, source: str, tensors: Mapping[str, Tensor], files: Mapping[str, str]) -> None:
        self.source, self.files = source, dict(files)
        self.read: set[str] = set()
        self._tensors = dict(tensors)
        self._names = {id(tensor): name for name, tensor in self._tensors.items()}

    def __getitem__(self, name: str) -> Tensor:
        """Raises DataError for a tensor whose numbers do not lie there one by one."""
        tensor = self._tensors[name]
        if odd := _odd(tensor):
            raise DataError(f"'{self.source}': '{name}' is {odd}; take weights that were saved as plain numbers")
        self.read.add(name)
        return tensor

    def __contains__(self, name: object) -> bool:  # a look at a name takes nothing
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def name_of(self, tensor: Tensor) -> str | None:
        """What a tensor is called there; None for one that was made of others."""
        return self._names.get(id(tensor))

    @property
    def left_over(self) -> list[str]:
        """Names that nobody has read, in their order."""
        return [name for name in self._tensors if name not in self.read]


def read_published(source: str) -> PublishedWeights:
    """The weights that a path or a hub name stands for, in memory. Raises DataError for files that are missing,
    damaged, or hold no tensors by name."""
    files = weight_files(source)
    found: dict[str, Tensor] = {}
    paths = _of_hub(source) if files is None else files
    for path in paths:
        found |= _read(path)
    if found and all(name.startswith(PARALLEL) for name in found):
        found = {name.removeprefix(PARALLEL): tensor for name, tensor in found.items()}
    return PublishedWeights(source, found, {path.name: _digest(path) for path in paths})


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(path: Path) -> dict[str, Tensor]:
    if path.suffix == ".safetensors":
        try:
            tensors: Any = read_tensors(path)[0]
        except RunError as error:
            raise DataError(str(error)) from None
    else:
        tensors = _unpickled(path)
    found = _by_name(tensors)
    if not found:
        raise DataError(f"{path}: holds no tensors by name; {WANTED}")
    if odd := next((name for name in found if not name.isprintable() or len(name) > LONGEST_NAME), None):
        raise DataError(f"{path}: damaged: it calls a tensor {odd[:60]!r}; take it from where it was published")
    if vast := next((name for name, tensor in found.items() if _holds_fewer(tensor)), None):
        raise DataError(
            f"{path}: damaged: '{vast}' says that it is {tuple(found[vast].shape)}, and holds fewer numbers; take it "
            "from where it was published"
        )
    return found


def _holds_fewer(tensor: Tensor) -> bool:
    """Whether one number stands for many: a part that copies or turns it would fill the memory."""
    return not _odd(tensor) and tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes()


def _unpickled(path: Path) -> Any:
    """What a file of torch's holds. Whatever torch makes of a damaged one is a DataError that names it."""
    try:
        _refuse_packed(regular(path))
        with warnings.catch_warnings(action="ignore"):  # torch's, about how a file was pickled
            return torch.load(path, map_location="cpu", weights_only=True)
    except DataError:
        raise
    except Exception as error:  # of any kind: pickle's, zip's, torch's
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        if "eights only" in reason or "weights_only" in reason:  # what torch says there advises to read it all the same
            reason = "it holds more than tensors, and to read that would run code of strangers"
        raise DataError(
            f"{path}: damaged, or no file of weights: {reason[:200]}; take it from where it was published, as "
            "safetensors where there is a choice"
        ) from None


def _refuse_packed(path: Path) -> None:
    """Raises DataError for a file of torch's whose entries are packed: torch packs none, and a small one could unpack
    to more than fits into memory."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as file:
            whole = sum(entry.file_size for entry in file.infolist())
        if whole > path.stat().st_size:
            raise DataError(f"{path}: damaged: it says that it holds {whole:,} bytes, more than the file has")


def _by_name(value: Any) -> dict[str, Tensor]:
    """The tensors of what a file holds: itself, or the one of its tables that has them."""
    if not isinstance(value, Mapping):
        return {}
    inner = next((value[key] for key in STATES if isinstance(value.get(key), Mapping)), value)
    return {
        name: tensor.detach() for name, tensor in inner.items() if isinstance(name, str) and isinstance(tensor, Tensor)
    }


def _odd(tensor: Tensor) -> str:
    """What keeps parts from reading a tensor as it is; empty where nothing does."""
    if tensor.layout != torch.strided:
        return f"stored sparsely ({str(tensor.layout).removeprefix('torch.')})"
    if tensor.device.type != "cpu":  # all that can be is read to there
        return f"without its numbers (of the device '{tensor.device.type}')"
    return f"quantised ({str(tensor.dtype).removeprefix('torch.')})" if tensor.is_quantized else ""


def _of_hub(name: str) -> list[Path]:
    """The files of a hub name, fetched where they are not here yet: safetensors before pickles."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    def fetch(file: str) -> Path:
        return Path(hf_hub_download(name, file))

    last: Exception | None = None
    for file in IN_FOLDERS:
        try:
            path = fetch(file)
            if file.endswith(INDEX):
                return [fetch(each) for each in names_in(path)]
            return [path]
        except EntryNotFoundError as error:  # also where nothing may be fetched
            last = error
        except DataError:
            raise
        except Exception as error:  # of the hub's client and its network, of any kind
            last = error
            break
    reason = " ".join(str(last).split())[:200] or type(last).__name__
    raise DataError(f"'{name}' cannot be loaded ({reason}); {WANTED}, or a hub name and a connection") from None
