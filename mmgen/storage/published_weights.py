"""Published weights, under the publisher's tensor names: from local files or from a hub.

These files are untrusted. Only tensors are read from pickles, and none of their code runs.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import DataError, RunError, regular
from ..files import file_digest, foreign
from ..recipe.weight_files import EXPECTED, IN_FOLDERS, INDEX, names_in_index, weight_files
from .weights import read_tensors

STATES = ("state_dict", "model")  # keys of the tensors in files with more content, such as an optimiser's state
MAX_NAME = 500  # characters of a tensor's name
PARALLEL = "module."  # prefix of all names if the model was saved inside torch's DataParallel
IS_FOLDER = 0x10  # a bit of an entry of a zip archive


class PublishedWeights(Mapping[str, Tensor]):
    """Tensors by their publisher's names, as parts see them.

    source  the path or hub name in the recipe
    files   file -> SHA-256
    read    names of the tensors that were read, and count as used
    """

    def __init__(self, source: str, tensors: Mapping[str, Tensor], files: Mapping[str, str]) -> None:
        self.source, self.files = source, dict(files)
        self.read: set[str] = set()
        self._tensors = dict(tensors)
        self._names = {id(tensor): name for name, tensor in self._tensors.items()}

    def __getitem__(self, name: str) -> Tensor:
        """Raises DataError for a sparse or quantised tensor, or one without data."""
        tensor = self._tensors[name]
        if problem := _format_problem(tensor):
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
    paths = _of_hub(source) if files is None else files
    for path in paths:
        tensors |= _read_file(path)
    if tensors and all(name.startswith(PARALLEL) for name in tensors):
        tensors = {name.removeprefix(PARALLEL): tensor for name, tensor in tensors.items()}
    return PublishedWeights(source, tensors, {path.name: file_digest(path) for path in paths})


def _read_file(path: Path) -> dict[str, Tensor]:
    if path.suffix == ".safetensors":
        try:
            tensors: Any = read_tensors(path)[0]
        except RunError as error:
            raise DataError(str(error)) from None
    else:
        tensors = _load_pickle(path)
    by_name = _by_name(tensors)
    if not by_name:
        raise DataError(f"{path}: contains no named tensors; {EXPECTED}")
    if bad_name := next((name for name in by_name if not name.isprintable() or len(name) > MAX_NAME), None):
        raise DataError(f"{path}: damaged: invalid tensor name {bad_name[:60]!r}; download the file again")
    if oversized := next((name for name, tensor in by_name.items() if _has_missing_data(tensor)), None):
        raise DataError(
            f"{path}: damaged: '{oversized}' has shape {tuple(by_name[oversized].shape)} but fewer values; download "
            "the file again"
        )
    return by_name


def _has_missing_data(tensor: Tensor) -> bool:
    """Whether the shape claims more values than are stored: a copy of the tensor would fill the memory."""
    return not _format_problem(tensor) and tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes()


def _load_pickle(path: Path) -> Any:
    """The content of a torch file. Raises DataError for any error of torch on a damaged file."""
    if what := foreign(path, "torch", "zip"):
        raise DataError(f"{path}: {what}")
    try:
        _check_zip(regular(path))
        with warnings.catch_warnings(action="ignore"):  # torch warns about how a file was pickled
            return torch.load(path, map_location="cpu", weights_only=True)
    except DataError:
        raise
    except Exception as error:  # of any kind: from pickle, zip or torch
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        if what := foreign(path, "torch"):  # a zip archive of something else
            raise DataError(f"{path}: {what}") from None
        if "hasRecord" in reason or "PytorchStreamReader" in reason:
            reason = "parts of the torch file are missing"
        if "eights only" in reason or "weights_only" in reason:  # torch's text advises to load the file anyway
            reason = "contains pickled objects other than tensors; loading it could execute arbitrary code"
        raise DataError(
            f"{path}: damaged, or not a weights file: {reason[:200]}; download the file again, as safetensors if "
            "available"
        ) from None


def _check_zip(path: Path) -> None:
    """Raises DataError for a torch file with compressed entries: torch compresses none, and a small file could unpack
    to more than fits into memory. Also for a wrong checksum, since torch compares none, for an archive behind other
    bytes, where torch looks for the entries in those bytes, and for an entry marked as a folder, of which torch reads
    nothing."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as file:
            if min((entry.header_offset for entry in file.infolist()), default=0):
                raise DataError(f"{path}: damaged: other bytes stand before the archive; download the file again")
            if folder := next((entry.filename for entry in file.infolist() if entry.external_attr & IS_FOLDER), None):
                raise DataError(f"{path}: damaged: {folder!r:.60} is marked as a folder; download the file again")
            unpacked_size = sum(entry.file_size for entry in file.infolist())
            if unpacked_size > path.stat().st_size:
                raise DataError(f"{path}: damaged: claims {unpacked_size:,} bytes, more than the size of the file")
            if name := file.testzip():
                raise DataError(f"{path}: damaged: checksum mismatch in '{name}'; download the file again")


def _by_name(value: Any) -> dict[str, Tensor]:
    """The named tensors of a file's content: of the table itself, or of the inner table that has them."""
    if not isinstance(value, Mapping):
        return {}
    inner = next((value[key] for key in STATES if isinstance(value.get(key), Mapping)), value)
    return {
        name: tensor.detach() for name, tensor in inner.items() if isinstance(name, str) and isinstance(tensor, Tensor)
    }


def _format_problem(tensor: Tensor) -> str:
    """Why a part cannot read a tensor directly; empty if it can."""
    if tensor.layout != torch.strided:
        return f"sparse ({str(tensor.layout).removeprefix('torch.')})"
    if tensor.device.type != "cpu":  # everything else is loaded to the CPU
        return f"without data (device '{tensor.device.type}')"
    return f"quantised ({str(tensor.dtype).removeprefix('torch.')})" if tensor.is_quantized else ""


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
            if file.endswith(INDEX):
                return [fetch(shard) for shard in names_in_index(path)]
            return [path]
        except EntryNotFoundError as error:  # also raised offline
            last = error
        except DataError:
            raise
        except Exception as error:  # the hub's client and the network raise errors of many kinds
            last = error
            break
    reason = " ".join(str(last).split())[:200] or type(last).__name__
    raise DataError(f"'{name}' cannot be loaded ({reason}); {EXPECTED}, or a hub name and a connection") from None
