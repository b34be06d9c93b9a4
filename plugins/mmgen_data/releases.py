"""VQA, OK-VQA and VQG as published: file names, where to get the files, licences, rows of bertgen's tables 1 and 2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mmgen_vision.coco import CAPTIONS, WHERE, YEARS
from mmgen_vision.configs import About

METRICS = ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "METEOR", "CIDEr")
NEURALTALK = (
    "never published: the paper generated them with github.com/karpathy/neuraltalk2; use captions of any model in "
    'COCO\'s format, or set test_split = "val"'
)
LICENCE = "questions and captions: CC BY 4.0; images: their photographers' terms"
SPLITS = ("train", "val", "test")

_TABLE_1 = """
Sample       | 38.8 - - - 34.2 12.7 13.3
Max          | 59.4 - - - 49.3 17.8 33.1
MDN-Joint    | 65.1 - - - 52.0 22.7 33.1
caption      | 75.41 56.49 43.26 32.28 66.18 26.51 43.56
image_frozen | 73.62 53.54 39.37 27.44 64.34 24.36 29.58
image        | 73.97 55.07 42.20 31.76 65.70 26.36 41.43
both         | 75.59 56.88 43.96 33.35 66.71 26.76 44.99
both_scratch | 75.84 56.42 43.53 32.85 66.30 25.92 38.81
"""

_TABLE_2 = """
MDN-Joint         | 36.0 24.9 16.8 10.4 41.8 23.4 50.7
MC-SBN            | 40.7 - - - - 22.6 -
caption           | 74.58 54.94 43.33 34.36 64.09 29.76 77.70
image_frozen      | 69.57 49.93 38.23 29.54 61.01 27.03 57.38
image             | 74.34 55.26 43.47 34.41 64.63 29.17 72.18
both              | 70.96 50.83 39.20 30.29 61.87 27.65 62.77
both_scratch      | 64.18 42.88 30.19 20.14 56.99 23.32 30.99
Human Performance | 86 - - - - 60 -
"""


@dataclass(frozen=True)
class Release:
    """One published data set.

    questions    split -> possible names of its file
    annotations  split -> the file with the answers and types of its questions
    captions     split -> the file with the captions of its images
    rows         label -> metric -> value, as printed in the paper; labels of the paper's models are our steps' names
    """

    about: About
    questions: Mapping[str, tuple[str, ...]]
    annotations: Mapping[str, str] = field(default_factory=dict)
    captions: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    rows_from: str = ""


def where_captions_are(name: str) -> str:
    """Where to get a file of captions."""
    return {"captions_test2015.json": NEURALTALK}.get(name, WHERE if name.startswith("captions_") else "")


def _printed(table: str) -> dict[str, dict[str, float | None]]:
    """Rows of a printed table: a label and seven numbers, "-" for a missing number."""
    rows = (line.split("|") for line in table.strip().splitlines())
    return {
        label.strip(): {
            metric: None if cell == "-" else float(cell) for metric, cell in zip(METRICS, cells.split(), strict=True)
        }
        for label, cells in rows
    }


def _vqa(name: str, page: str, splits: tuple[str, ...], prefix: str = "", *more: str, table: str = "") -> Release:
    """A release of VQA. `more`: a kind of question files beside OpenEnded, which has the same questions."""
    years = {split: YEARS[split] for split in splits}
    return Release(
        About(name, LICENCE, page),
        {
            split: tuple(f"{prefix}{kind}_mscoco_{year}_questions.json" for kind in ("OpenEnded", *more))
            for split, year in years.items()
        },
        {split: f"{prefix}mscoco_{year}_annotations.json" for split, year in years.items()},
        {split: CAPTIONS.format(year=year) for split, year in years.items()},
        _printed(table),
        "bertgen, table 1: test2015, with captions written by NeuralTalk2",
    )


def _vqg(source: str, images: str, captions: Mapping[str, str], table: str = "") -> Release:
    about = About(
        f"VQG_{source}",
        f"questions: the terms that come with them; {images}",
        "www.microsoft.com/en-us/download/details.aspx?id=53670",
    )
    questions = {split: (f"{source.lower()}_{split}_all.csv",) for split in SPLITS}
    printed_in = "bertgen, table 2: all 1,249 test images, with COCO's captions"
    return Release(about, questions, {}, captions, _printed(table), printed_in)


VQA = {
    "1.0": _vqa("VQA 1.0", "visualqa.org/vqa_v1_download.html", (*YEARS,), "", "MultipleChoice", table=_TABLE_1),
    "2.0": _vqa("VQA 2.0", "visualqa.org/download.html", (*YEARS,), "v2_"),
    "okvqa": _vqa("OK-VQA", "okvqa.allenai.org/download.html", ("train", "val")),
}
VQG = {  # all three splits of VQG_COCO are from COCO's train2014
    "coco": _vqg(
        "COCO",
        "captions: CC BY 4.0; images: their photographers' terms",
        dict.fromkeys(SPLITS, CAPTIONS.format(year=YEARS["train"])),
        _TABLE_2,
    ),
    "flickr": _vqg("Flickr", "images: their owners' terms", {}),
    "bing": _vqg("Bing", "images: their owners' terms", {}),
}
