"""`mmgen frcnn`: the published pickle, config.yaml and vocabularies as one safetensors file.

The pickle is read as that of `start = "weights:..."`: only tensors, and none of its code runs.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from mmgen.errors import DataError, regular
from mmgen.files import refuse_overwriting
from mmgen.progress import tell
from mmgen.reading.text import read_text

OBJECTS, ATTRIBUTES = "objects_vocab.txt", "attributes_vocab.txt"
KEYS = {  # setting -> where config.yaml has it
    "pixel_mean": ("model", "pixel_mean"),
    "pixel_std": ("model", "pixel_std"),
    "caffe_maxpool": ("model", "max_pool"),
    "min_size": ("input", "min_size_test"),
    "max_size": ("input", "max_size_test"),
    "stride_in_1x1": ("resnets", "stride_in_1x1"),
    "anchor_offset": ("anchor_generator", "offset"),
    "proposals_before": ("rpn", "pre_nms_topk_test"),
    "proposals": ("rpn", "post_nms_topk_test"),
    "proposal_overlap": ("rpn", "nms_thresh"),
    "overlaps": ("roi_heads", "nms_thresh_test"),
    "pooled": ("roi_box_head", "pooler_resolution"),
    "box_weights": ("roi_box_head", "bbox_reg_weights"),
    "halved": ("roi_box_head", "res5halve"),
    "min_regions": ("min_detections",),
}


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("out", type=click.Path(path_type=Path))
def frcnn(folder: Path, out: Path) -> None:
    """Convert the Faster R-CNN of Visual Genome in FOLDER to OUT, a safetensors file.

    FOLDER has pytorch_model.bin and config.yaml of unc-nlp/frcnn-vg-finetuned, and, for names of regions,
    objects_vocab.txt and attributes_vocab.txt of bottom-up-attention. Then: mmgen features extract IMAGES STORE
    --type visual_genome --set weights=OUT
    """
    from mmgen.storage.published_weights import read_published

    from .extractor import network_of, write

    if out.suffix != ".safetensors":
        raise DataError(f"{out}: must end in .safetensors")
    refuse_overwriting("OUT", out, [folder])
    published = read_published(str(folder))
    tensors = {name: published[name].clone() for name in published}
    about = {
        "settings": settings(folder / "config.yaml"),
        "classes": read_vocabulary(folder / OBJECTS),
        "attributes": read_vocabulary(folder / ATTRIBUTES),
    }
    network = network_of(tensors, about, folder)
    predictor = network.roi_heads["box_predictor"]
    for kind, file, head in (("classes", OBJECTS, "cls_score"), ("attributes", ATTRIBUTES, "attr_score")):
        if head in predictor and about[kind] and len(about[kind]) != (count := predictor[head].out_features - 1):
            raise DataError(f"{folder / file}: has {len(about[kind])} names, but the network has {count} {kind}")
    write(out, tensors, {**about, "settings": asdict(network.settings)})
    tell(f"{out}: {len(tensors)} tensors")


def settings(path: Path) -> dict[str, Any]:
    """The settings in a published config.yaml; those that it lacks have their defaults. Raises DataError."""
    import yaml  # type: ignore[import-untyped]

    from .network import MEANINGS, settings_of

    try:
        tables = _with_lower_keys(yaml.safe_load(regular(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        reason = getattr(error, "strerror", None) or "not valid YAML"
        raise DataError(f"{path}: {reason}; use the config.yaml beside the published weights") from None
    values: dict[str, Any] = {}
    for name, keys in KEYS.items():
        value = tables
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            values[name] = value
    if isinstance(values.get("overlaps"), float):
        values["overlaps"] = [values["overlaps"]]
    if isinstance(wrong := settings_of(values), str):
        key, value = ".".join(KEYS[wrong]).upper(), f"{values[wrong]!r:.60}"
        raise DataError(
            f"{path}: {key} must be {MEANINGS[wrong]}, but is {value}; use the config.yaml beside the published weights"
        )
    return values


def _with_lower_keys(value: Any) -> Any:
    """Nested tables with keys in lower case."""
    return (
        {str(key).lower(): _with_lower_keys(inner) for key, inner in value.items()}
        if isinstance(value, dict)
        else value
    )


def read_vocabulary(path: Path) -> list[str]:
    """The first name of every line ("stop sign,stopsign"); empty without the file."""
    if not path.exists():
        return []
    return [line.split(",")[0].strip() for line in read_text(path).split("\n") if line.strip()]
