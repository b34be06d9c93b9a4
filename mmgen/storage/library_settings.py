"""Settings files of libraries inside an export, such as transformers' config.json. An export may come from a stranger.

Libraries act on some settings: they fetch the network, the kernel or the code that a setting names, open the file that
it names, or create as many layers as it says. An export that this mmgen wrote has no such settings, so they are refused
before a library reads the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import RunError
from ..files import read_json

SETTINGS = "*config.json"  # config, tokenizer_config, preprocessor_config, generation_config, adapter_config
ADAPTER = "adapter_config.json"  # names a base model, which peft fetches
FETCHED = {  # setting -> what a library does with it
    "auto_map": "runs code of the folder or of a repository",
    "custom_pipelines": "runs code of the folder or of a repository",
    "quantization_config": "runs code of another library",
    "base_model_name_or_path": "fetches a model",
    "use_pretrained_backbone": "fetches a model",
    "use_kernels": "fetches compiled code",
    "fast_tokenizer_files": "opens other files",
}
IMPLEMENTATIONS = ("eager", "sdpa")  # of attention; for other names, transformers may fetch compiled code
TIMM_NAME = re.compile(r"[\w.]+")  # timm fetches names with a source before them, such as hf-hub:user/name
MOST_LAYERS, MOST, MOST_PIXELS = 1000, 10_000_000, 10_000  # above the values of any existing network
LAYERS = re.compile(r"layers$|depth|blocks")
PIXELS = ("size", "crop_size", "pad_size")


def check_library_settings(folder: Path) -> None:
    """Raises RunError if a settings file in a folder, at any depth, makes a library read anything outside of the
    folder, or has impossible sizes."""
    for path in sorted(folder.rglob(SETTINGS)):
        if path.name == ADAPTER:
            raise RunError(f"{path}: adapters are not part of an export; delete the file if you trust the rest")
        if problem := next(_settings_problems(read_json(path), path.name == "config.json"), None):
            raise RunError(f"{path}: {problem[:200]}; mmgen writes no such setting, so do not trust this folder")


def _settings_problems(
    value: Any, network: bool, key: str = "", parent: Mapping[str, Any] | None = None
) -> Iterator[str]:
    """What is wrong with a value and the values inside it. `network`: whether the file describes a network. `key`: the
    name of the value in the table `parent`."""
    if value and key in FETCHED:
        yield f"'{key}' is refused: a library that reads it {FETCHED[key]}"
    elif key.endswith("_implementation") and value not in (None, *IMPLEMENTATIONS):
        yield f"'{key}' must be one of {', '.join(IMPLEMENTATIONS)}, not {value!r:.60}"
    elif key == "backbone" and isinstance(value, str):
        if (parent or {}).get("model_type") != "timm_backbone" or not TIMM_NAME.fullmatch(value):
            yield f"'{key}' is refused: a library that reads it fetches a model ({value!r:.60})"
    elif key.endswith("_file") and isinstance(value, str):
        yield f"'{key}' is refused: it names a file ({value!r:.60})"
    elif isinstance(value, dict):
        for name, inner in value.items():
            pixels = key in PIXELS and isinstance(inner, int) and inner > MOST_PIXELS
            yield from [f"'{key}.{name}' must be at most {MOST_PIXELS}, not {inner}"] * pixels
            yield from _settings_problems(inner, network, name, value)
    elif isinstance(value, list):
        for inner in value:
            yield from _settings_problems(inner, network, key, parent)
    elif network and isinstance(value, int):
        most = MOST_LAYERS if LAYERS.search(key) else MOST
        if value > most:
            yield f"'{key}' must be at most {most}, not {str(value)[:20]}"
