"""Reads torch files of strangers: only tensors are read from their pickles, and none of their code runs."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import DataError

STATES = ("state_dict", "model")  # keys of the tensors in files with more content, such as an optimiser's state


def read_torch_file(path: Path) -> Any:
    """The content of a torch file, tensors in tables. Raises DataError for any error of torch on a damaged file, and
    for an archive that would unpack to more than its size, since torch compresses none."""
    try:
        if zipfile.is_zipfile(path):
            size = sum(entry.file_size for entry in zipfile.ZipFile(path).infolist())
            if size > path.stat().st_size:
                raise DataError(f"{path}: damaged: it claims {size:,} bytes; download the file again")
        with warnings.catch_warnings(action="ignore"):  # torch warns about how a file was pickled
            return torch.load(path, map_location="cpu", weights_only=True)
    except DataError:
        raise
    except Exception as error:  # of any kind: from pickle, zip or torch
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        if "eights only" in reason or "weights_only" in reason:  # torch's text advises to load the file anyway
            reason = "contains pickled objects other than tensors; loading it could execute arbitrary code"
        raise DataError(
            f"{path}: damaged, or not a weights file: {reason[:200]}; download the file again, as safetensors if "
            "available"
        ) from None


def named_tensors(content: Any, path: Path) -> dict[str, Tensor]:
    """The named tensors of a file's content: of the table itself, or of the inner table that has them. Raises DataError
    for damaged ones."""
    if not isinstance(content, Mapping):
        return {}
    inner = next((content[key] for key in STATES if isinstance(content.get(key), Mapping)), content)
    tensors = {
        name: tensor.detach() for name, tensor in inner.items() if isinstance(name, str) and isinstance(tensor, Tensor)
    }
    for name, tensor in tensors.items():
        if problem := _problem(tensor):
            raise DataError(f"{path}: '{name}' {problem}")
    return tensors


def _problem(tensor: Tensor) -> str:
    """Why a tensor cannot be read; a copy of one whose shape claims more values than it has would fill the memory."""
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
        return "is sparse, quantised or without data; use weights saved as dense, unquantised tensors"
    if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        return f"has shape {tuple(tensor.shape)} but fewer values; download the file again"
    return ""
