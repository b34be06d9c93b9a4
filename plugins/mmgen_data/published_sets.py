"""VQA, OK-VQA and VQG as published: file names, where to get the files, licences, rows of bertgen's tables 1 and 2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

METRICS = ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "METEOR", "CIDEr")
COCO = "annotations_trainval2014.zip (241 MB) of cocodataset.org/#download"
NEURALTALK = (
    "never published: the paper generated them with github.com/karpathy/neuraltalk2; use captions of any model in "
    'COCO\'s format, or set test_split = "val"'
)


@dataclass(frozen=True)
class Release:
    """One published data set.

    questions  split -> possible names of its file
    captions   split -> the file with the captions of its images
    annotations  split -> the file with the answers and types of its questions
    origin     file name, or "" for all other files -> where to get the file
    rows       label -> metric -> value, as printed in the paper; labels of the paper's models are our steps' names
    """

    name: str
    format: Literal["vqa", "vqg", "jsonl", "csv"]
    questions: Mapping[str, tuple[str, ...]]
    captions: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    origin: Mapping[str, str] = field(default_factory=dict)
    licence: str = "not stated"
    rows: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    rows_from: str = ""

    def where(self, file: str) -> str:
        return self.origin.get(file) or self.origin.get("", "")


def _parse_printed_table(table: str) -> dict[str, dict[str, float | None]]:
    """Rows of a printed table: a label and seven numbers, "-" for a missing number."""
    split = [line.split("|") for line in table.strip().splitlines()]
    return {
        label.strip(): {
            metric: None if cell == "-" else float(cell) for metric, cell in zip(METRICS, cells.split(), strict=True)
        }
        for label, cells in split
    }


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


def _vqa_file_names(prefix: str, kinds: tuple[str, ...], **years: str) -> dict[str, tuple[str, ...]]:
    return {
        split: tuple(f"{prefix}{kind}_mscoco_{year}_questions.json" for kind in kinds) for split, year in years.items()
    }


_VQA_CAPTIONS = {
    split: f"captions_{year}.json"
    for split, year in {"train": "train2014", "val": "val2014", "test": "test2015"}.items()
}
_COCO_ORIGIN = {"captions_train2014.json": COCO, "captions_val2014.json": COCO, "captions_test2015.json": NEURALTALK}


def _annotation_file_names(prefix: str) -> dict[str, str]:
    return {split: f"{prefix}mscoco_{split}2014_annotations.json" for split in ("train", "val")}


VQA1 = Release(
    name="VQA 1.0",
    format="vqa",
    questions=_vqa_file_names("", ("OpenEnded", "MultipleChoice"), train="train2014", val="val2014", test="test2015"),
    captions=_VQA_CAPTIONS,
    annotations=_annotation_file_names(""),
    origin={"": "visualqa.org/vqa_v1_download.html", **_COCO_ORIGIN},
    licence="questions and captions: CC BY 4.0; images: their photographers' terms",
    rows=_parse_printed_table(_TABLE_1),
    rows_from="bertgen, table 1: test2015, with captions written by NeuralTalk2",
)
VQA2 = Release(
    name="VQA 2.0",
    format="vqa",
    questions=_vqa_file_names("v2_", ("OpenEnded",), train="train2014", val="val2014", test="test2015"),
    captions=_VQA_CAPTIONS,
    annotations=_annotation_file_names("v2_"),
    origin={"": "visualqa.org/download.html", **_COCO_ORIGIN},
    licence=VQA1.licence,
)
OKVQA = Release(
    name="OK-VQA",
    format="vqa",
    questions=_vqa_file_names("", ("OpenEnded",), train="train2014", val="val2014"),
    captions={split: _VQA_CAPTIONS[split] for split in ("train", "val")},
    annotations=_annotation_file_names(""),
    origin={"": "okvqa.allenai.org/download.html", **_COCO_ORIGIN},
    licence=VQA1.licence,
)
SPLITS = ("train", "val", "test")
VQG_TABLE = "{source}_{split}_all.csv"
_VQG_ORIGIN = {"": "www.microsoft.com/en-us/download/details.aspx?id=53670", **_COCO_ORIGIN}
VQG_COCO = Release(
    name="VQG_COCO",
    format="vqg",
    questions={split: (VQG_TABLE.format(source="coco", split=split),) for split in SPLITS},
    captions=dict.fromkeys(SPLITS, "captions_train2014.json"),  # all three splits are from COCO's train2014
    origin=_VQG_ORIGIN,
    licence="questions: the terms that come with them; captions: CC BY 4.0; images: their photographers' terms",
    rows=_parse_printed_table(_TABLE_2),
    rows_from="bertgen, table 2: all 1,249 test images, with COCO's captions",
)
VQG_FLICKR, VQG_BING = (
    Release(
        name=f"VQG_{source.title()}",
        format="vqg",
        questions={split: (VQG_TABLE.format(source=source, split=split),) for split in SPLITS},
        origin=_VQG_ORIGIN,
        licence="questions: the terms that come with them; images: their owners' terms",
    )
    for source in ("flickr", "bing")
)
PLAIN = Release(
    name="JSONL",
    format="jsonl",
    questions={split: (f"{split}.jsonl",) for split in SPLITS},
    origin={"": 'a line an example: {"id": "1", "image": "1.jpg", "caption": "...", "questions": ["...?"]}'},
    licence="your own",
)
TABLES = Release(
    name="CSV",
    format="csv",
    questions={split: (f"{split}.csv", f"{split}.tsv") for split in SPLITS},
    origin={"": "a header like image,caption,questions, and a row a question or an image"},
    licence="your own",
)
