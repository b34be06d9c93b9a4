"""Fuzzing of exports: folders with a model that come from strangers. The tables and the weights are compared with the
files, read by hand."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from . import mutations
from .folders import STEP, _ask, _quietly, _spoil_json, runs
from .harness import Surface
from .recipes import _same

INDEX = "model.safetensors.index.json"
TABLES = ("config.json", "vocabularies.json", INDEX)
WEIGHTS = ("model.safetensors", "backbone/model.safetensors")
ODD = [
    "local",
    "/etc",
    "../..",
    2,
    10**9,
    {"type": "masked"},
    {"type": "regions"},
    "hf:a/b",
    "http://a",
    "model.safetensors",
]


def surfaces() -> list[Surface]:
    renamed = "example 'x' has no "  # a model that reads a field of another name is a model
    named = rf"config\.json|vocabularies\.json|\.safetensors|tokenizer|/case|far too large weights|{renamed}"
    return [
        Surface("export", _prepare, _spoil, _load, _check, lines=20, named=named),
        Surface("export_tables", _prepare, _spoil_table, _read_tables, _check_tables, named=named),
    ]


def _prepare(folder: Path) -> Any:
    from mmgen.inference.load import load_run

    with _quietly():
        load_run(runs() / "runs" / STEP.parent.parent).save(folder / "whole", extractor=False)
    for path in (folder / "whole").iterdir():
        path.rename(folder / path.name)
    (folder / "whole").rmdir()
    (folder / "README.md").unlink()
    shutil.rmtree(folder / "examples", ignore_errors=True)
    (folder / "vocabularies.json").write_text(json.dumps({"vocabularies": {"answers": ["red", "blue"]}}))
    names = _header(folder / WEIGHTS[0])
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(names, WEIGHTS[0])}))


def _spoil_table(draw: Random, folder: Path, _) -> Path:
    path = folder / draw.choice((TABLES[0], *TABLES, *WEIGHTS))
    if path.suffix == ".safetensors":
        path.write_bytes(_weights(draw, path.read_bytes()))
    elif draw.random() < 0.2:
        path.write_bytes(mutations.bytes_(draw, path.read_bytes()))
    else:
        mutations.write(path, mutations.json_(draw, json.loads(path.read_text(encoding="utf-8")), ODD))
    return path


def _weights(draw: Random, data: bytes) -> bytes:
    """A damaged file of weights, or one with another header."""
    if draw.random() < 0.4:
        return mutations.bytes_(draw, data)
    length = int.from_bytes(data[:8], "little")
    odd = ["F16", "I64", "F8_E4M3", [0, 10**12], [10**6, 10**6], 2**64, [2, 0]]
    header = mutations.json_(draw, json.loads(data[8 : 8 + length]), odd).encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(header)) + header + data[8 + length :]


def _read_tables(path: Path, _) -> Any:
    from mmgen.storage.exports import read_config, read_vocabularies, shapes

    folder = path.parent.parent if path.parent.name == "backbone" else path.parent
    config = read_config(folder)
    return folder, config, read_vocabularies(folder), shapes(folder, config["encoder_prefix"])


def _check_tables(path: Path, content: Any, _) -> None:
    folder, config, vocabularies, shapes = content
    assert repr(json.loads((folder / TABLES[0]).read_text(encoding="utf-8"))) == repr(config)
    said = json.loads((folder / TABLES[1]).read_text(encoding="utf-8"))["vocabularies"]
    assert vocabularies == {name: tuple(map(str, classes)) for name, classes in said.items()}
    prefix = config["encoder_prefix"]
    expected = (
        {prefix + name: tuple(about["shape"]) for name, about in _header(folder / WEIGHTS[1]).items()} if prefix else {}
    )
    named = json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"].values()
    if WEIGHTS[0] in named:
        expected |= {name: tuple(about["shape"]) for name, about in _header(folder / WEIGHTS[0]).items()}
    assert shapes == expected, f"shapes {shapes} of {expected}"


def _header(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return {name: about for name, about in header.items() if name != "__metadata__"}


# --- whole folders ---


def _spoil(draw: Random, folder: Path, _) -> Path:
    (folder / TABLES[1]).unlink()
    (folder / INDEX).unlink()
    path = folder / draw.choice(
        (
            *[TABLES[0]] * 4,
            *WEIGHTS,
            "backbone/config.json",
            "backbone/tokenizer.json",
            "backbone/tokenizer_config.json",
        )
    )
    if path.suffix == ".safetensors":
        path.write_bytes(_weights(draw, path.read_bytes()))
    else:
        _spoil_json(draw, path)
    return path


def _load(path: Path, _) -> Any:
    """Load the export as `mmgen generate` does, and generate one text."""
    from mmgen.inference.load_export import load_export
    from mmgen.registry import installed

    folder = path.parent.parent if path.parent.name == "backbone" else path.parent
    with _quietly():
        loaded = load_export(folder, installed())
        return loaded, _ask(loaded), folder


def _check(path: Path, content: Any, _) -> None:
    from mmgen.storage.weights import state

    loaded, text, folder = content
    config = json.loads((folder / TABLES[0]).read_text(encoding="utf-8"))
    tables = {
        name: config[name] for name in ("backbone", "inputs", "generator", "sequence", "decoding") if name in config
    }
    for name, part in tables["inputs"].items():
        part["fields"] = part.get("fields") or [name]  # none: that of the input's name
    _same(tables, loaded.recipe.model_dump(mode="json"), ())
    assert isinstance(text, str) and loaded.step == config["step"]
    tensors = state(loaded.model)
    for place, prefix in ((WEIGHTS[1], config["encoder_prefix"]), (WEIGHTS[0], "")):
        data = (folder / place).read_bytes()
        numbers = data[8 + int.from_bytes(data[:8], "little") :]
        for name, about in _header(folder / place).items():
            first, last = about["data_offsets"]
            kinds = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I64": "<i8", "I32": "<i4"}
            tensor = tensors[prefix + name].detach().numpy()
            assert np.isfinite(tensor).all(), f"{name} is not finite but was accepted"
            if about["dtype"] in kinds:
                stored = np.frombuffer(numbers[first:last], kinds[about["dtype"]]).reshape(about["shape"])
                assert np.array_equal(tensor, stored.astype(tensor.dtype)), f"{name} is another"
