"""The files of an export, read: config.json, vocabularies, weights and their shapes; no local paths.

config.json          the step, its parts' configs, decoding, plugins
model.safetensors    weights, in shards with an index over 5 GB
backbone/            the encoder with its tokenizer; transformers' `from_pretrained` loads the folder
extractor/<input>/   the networks that compute features of pictures
vocabularies.json    the classes of the heads, if any
README.md  examples/ the model card and its pictures
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import RunError
from ..files import check_table, open_tensors, read_table

if TYPE_CHECKING:  # a folder that is missing or of another kind is refused before torch is imported
    from torch import Tensor

FORMAT_VERSION = 1
CONFIG, VOCABULARIES, CARD = "config.json", "vocabularies.json", "README.md"
BACKBONE, EXTRACTORS, EXAMPLES = "backbone", "extractor", "examples"
WEIGHTS = "model.safetensors"
KINDS: Mapping[str, type | tuple[type, ...]] = {  # key of config.json -> its type
    **dict.fromkeys(("name", "step", "kind", "encoder_prefix", "mmgen_version", "dtype"), str),
    **dict.fromkeys(("backbone", "inputs", "objectives", "plugins"), dict),
    "generator": (dict, type(None)),  # none in a recipe whose steps only predict
    **dict.fromkeys(("step_inputs", "step_objectives"), list),
}
SHARD = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors")
COMPLETE = "download or copy the complete folder again"


def is_export(path: Path) -> bool:
    """Whether a folder is an export, and not a run."""
    if (path / "recipe.json").exists() or not (path / CONFIG).is_file():
        return False
    return "format_version" in read_table(path / CONFIG)


def read_config(path: Path) -> dict[str, Any]:
    """The config.json of an export. Raises RunError if it is damaged, or of a newer version of mmgen."""
    if not (path / CONFIG).is_file():
        raise RunError(f"{path}: no {CONFIG} in this folder; name a folder that `mmgen export` wrote, or a run folder")
    config = read_table(path / CONFIG, format_version=int)
    if (version := config["format_version"]) > FORMAT_VERSION:
        raise RunError(
            f"{path / CONFIG}: has format_version {version}, but this mmgen reads up to {FORMAT_VERSION}; upgrade mmgen"
        )
    check_table(config, path / CONFIG, KINDS)
    if problem := next(_config_problems(config), None):
        raise RunError(f"{path / CONFIG}: damaged: {problem[:200]}; {COMPLETE}")
    return config


def _config_problems(config: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong inside the tables and lists of a config.json, which may come from a stranger."""
    for key in ("step_inputs", "step_objectives"):
        if not config[key] or not all(isinstance(name, str) for name in config[key]):
            yield f"'{key}' must be a list of names"
    for key in ("inputs", "objectives"):
        for name, settings in config[key].items():
            if not isinstance(settings, dict) or not isinstance(settings.get("type"), str):
                yield f"{key}.{name}: must be a table with a 'type'"
            elif settings.get("features") is not None:
                yield f"{key}.{name}.features: must be null, because an export reads no files outside of its folder"
    if not isinstance(config.get("trained_on", ""), str):
        yield "'trained_on' must be a text"
    for name, entry in config["plugins"].items():
        parts = entry.get("parts") if isinstance(entry, dict) else None
        if not isinstance(parts, list) or not all(isinstance(text, str) for text in (entry.get("version"), *parts)):
            yield f"plugins.{name}: must be a table with 'version' and a list of 'parts'"


def read_vocabularies(folder: Path) -> dict[str, tuple[str, ...]]:
    """The classes of an export's heads; empty for a step without heads. Raises RunError for a damaged file."""
    path = folder / VOCABULARIES
    if not path.exists():
        return {}
    saved = read_table(path, vocabularies=dict)["vocabularies"]
    if not all(isinstance(classes, list) for classes in saved.values()):
        raise RunError(f"{path}: damaged: 'vocabularies' must be lists; {COMPLETE}")
    return {name: tuple(map(str, classes)) for name, classes in saved.items()}


def read_weights(folder: Path, prefix: str) -> dict[str, Tensor]:
    """The weights of an export, by the model's names. Raises RunError for damaged files."""
    tensors: dict[str, Tensor] = {}
    for path, start in _weight_files(folder, prefix):
        with open_tensors(path, COMPLETE, COMPLETE) as file:
            tensors |= {start + name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return tensors


def shapes(folder: Path, prefix: str) -> dict[str, tuple[int, ...]]:
    """The shapes of an export's weights, from the headers of its files. Raises RunError for damaged files."""
    by_name: dict[str, tuple[int, ...]] = {}
    for path, start in _weight_files(folder, prefix):
        with open_tensors(path, COMPLETE, COMPLETE) as file:
            by_name |= {start + name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    return by_name


def _weight_files(folder: Path, prefix: str) -> Iterator[tuple[Path, str]]:
    """Every file of weights with the prefix of its names; the encoder's first, since the others have its longer
    tables."""
    for place, start in ((folder / BACKBONE, prefix), (folder, "")) if prefix else ((folder, ""),):
        files = sorted(path for path in place.glob("*.safetensors") if SHARD.fullmatch(path.name))
        index = place / f"{WEIGHTS}.index.json"
        if index.exists():
            listed = read_table(index, weight_map=dict)["weight_map"]
            files = [place / name for name in sorted({str(name) for name in listed.values()}) if SHARD.fullmatch(name)]
        yield from ((path, start) for path in files)


def without_local_paths(value: Any) -> Any:
    """Nested tables with every path of this machine replaced by "local": an export must not contain any."""
    if isinstance(value, dict):
        return {key: without_local_paths(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_local_paths(inner) for inner in value]
    return "local" if isinstance(value, str) and _is_local_path(value) else value


def _is_local_path(text: str) -> bool:
    path = Path(text)
    try:
        return path.is_absolute() or ("/" in text and path.exists()) or path.suffix == ".safetensors"
    except (OSError, ValueError):  # too long for a path, or with a NUL
        return False
