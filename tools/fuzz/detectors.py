"""Fuzzing of the published detector that `mmgen frcnn` converts: weights, settings and names. A naive reader checks."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from kit import frcnn

from . import mutations
from .harness import Surface
from .published import EVIL

FILES = ("pytorch_model.bin", "config.yaml", "config.yaml", "objects_vocab.txt", "attributes_vocab.txt")
ODD_SETTINGS = ([], [0.5], [0.1, 0.2, 0.3], [1, 2, 3], "0.5", 10**7, -4, 1e-9, [None], [[0.5]], "true", "1, 2, 3")


def surfaces() -> list[Surface]:
    named = r"published|pytorch_model\.bin|config\.yaml|_vocab\.txt|vg\.safetensors"
    return [Surface("frcnn", _prepare, _spoil, _read, _check, named=named)]


def _prepare(folder: Path) -> Any:
    import torch

    source = frcnn.published(folder / "published")
    torch.set_num_threads(1)
    _convert(source, folder / "vg.safetensors")
    return {"weights": frcnn.weights(), "picture": _picture()}


def _picture() -> Any:
    from PIL import Image

    from mmgen.parts import Picture

    pixels = np.random.default_rng(0).integers(0, 255, (90, 120, 3), dtype=np.uint8)
    return Picture("one", lambda: Image.fromarray(pixels))


def _convert(folder: Path, out: Path) -> None:
    from mmgen_frcnn.command import frcnn as command

    with contextlib.redirect_stdout(io.StringIO()):
        command.callback(folder, out)


def _spoil(draw: Random, folder: Path, _) -> Path:
    if draw.random() < 0.2:
        path = folder / "vg.safetensors"
        path.write_bytes(mutations.bytes_(draw, path.read_bytes()))
        return path
    path = folder / "published" / draw.choice(FILES)
    if path.suffix == ".yaml" and draw.random() < 0.8:  # JSON is YAML
        mutations.write(path, mutations.json_(draw, frcnn.CONFIG, ODD_SETTINGS))
    elif draw.random() < 0.1:
        path.unlink()
    else:
        path.write_bytes(mutations.bytes_(draw, path.read_bytes(), EVIL))
    return path


def _read(path: Path, prepared: Any) -> Any:
    """Convert, if a published file is damaged; then load the converted file, and see a picture with it."""
    from mmgen_frcnn import VisualGenome

    out = path.parent / "vg.safetensors"
    if path != out:
        out = path.parents[1] / "vg.safetensors"
        out.unlink()
        _convert(path.parent, out)
    extractor = VisualGenome(weights=out, max_regions=6).build()
    (record,) = extractor.records([prepared["picture"]])
    return extractor, record


def _check(path: Path, content: Any, prepared: Any) -> None:
    """The tensors are the published ones (files have checksums), settings and names those of the texts."""
    import torch
    import yaml

    extractor, record = content
    actual = extractor.network.state_dict()
    assert actual.keys() == prepared["weights"].keys()
    for name, tensor in prepared["weights"].items():
        assert torch.equal(actual[name], tensor), f"{name} is another"
    folder = path.parent if path.parent.name == "published" else path.parent / "published"
    names = {}
    for name in ("objects", "attributes"):
        file = folder / f"{name}_vocab.txt"
        lines = file.read_bytes().decode("utf-8-sig").split("\n") if file.exists() else []
        names[name] = [line.split(",")[0].strip() for line in lines if line.strip()]
    assert extractor.about["classes"] == names["objects"] and extractor.about["attributes"] == names["attributes"]
    tables = _lower(yaml.safe_load((folder / "config.yaml").read_bytes().decode("utf-8")))
    settings = extractor.network.settings
    for name, keys in {"min_size": ("input", "min_size_test"), "pixel_mean": ("model", "pixel_mean")}.items():
        value = tables
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            expected, actual_values = np.array(value, float), np.array(getattr(settings, name), float)
            assert np.array_equal(actual_values, expected), f"{name}: {actual_values} instead of {expected}"
    assert record.features.shape[1] == 64 and len(record.features) <= 6 and json.dumps(extractor.fingerprint)


def _lower(value: Any) -> Any:
    return {str(key).lower(): _lower(inner) for key, inner in value.items()} if isinstance(value, dict) else value
