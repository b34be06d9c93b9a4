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
    """One published data set. In names of files, {split} and {year} stand for a split and what `years` says for it.

    years        split -> the part of COCO that its images are of, in names of files
    questions    possible names of a split's file
    annotations  the file with the answers and types of its questions
    captions     the file with the captions of its images
    rows         label -> metric -> value, as printed in the paper; labels of the paper's models are our steps' names
    """

    about: About
    years: Mapping[str, str]
    questions: tuple[str, ...]
    annotations: str = ""
    captions: str = CAPTIONS
    rows: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    rows_from: str = ""

    def files(self, split: str, *names: str) -> tuple[str, ...]:
        """The names of a split's files; none of a split that the release does not have."""
        return tuple(name.format(split=split, year=self.years[split]) for name in names if name and split in self.years)


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


VQA_1 = tuple(
    f"{kind}_mscoco_{{year}}_questions.json" for kind in ("OpenEnded", "MultipleChoice")
)  # the same questions
VQG_FROM = "www.microsoft.com/en-us/download/details.aspx?id=53670"
VQG_LICENCE = "questions: the terms that come with them; "
OWNERS = "images: their owners' terms"
VQA = {
    "1.0": Release(
        About("VQA 1.0", LICENCE, "visualqa.org/vqa_v1_download.html"),
        YEARS,
        VQA_1,
        "mscoco_{year}_annotations.json",
        rows=_printed(_TABLE_1),
        rows_from="bertgen, table 1: test2015, with captions written by NeuralTalk2",
    ),
    "2.0": Release(
        About("VQA 2.0", LICENCE, "visualqa.org/download.html"),
        YEARS,
        ("v2_OpenEnded_mscoco_{year}_questions.json",),
        "v2_mscoco_{year}_annotations.json",
    ),
    "okvqa": Release(
        About("OK-VQA", LICENCE, "okvqa.allenai.org/download.html"),
        {split: YEARS[split] for split in ("train", "val")},
        VQA_1[:1],
        "mscoco_{year}_annotations.json",
    ),
}
VQG = {
    "coco": Release(
        About("VQG_COCO", f"{VQG_LICENCE}captions: CC BY 4.0; images: their photographers' terms", VQG_FROM),
        dict.fromkeys(SPLITS, YEARS["train"]),  # all three splits are from COCO's train2014
        ("coco_{split}_all.csv",),
        rows=_printed(_TABLE_2),
        rows_from="bertgen, table 2: all 1,249 test images, with COCO's captions",
    ),
    "flickr": Release(
        About("VQG_Flickr", VQG_LICENCE + OWNERS, VQG_FROM),
        dict.fromkeys(SPLITS, ""),
        ("flickr_{split}_all.csv",),
        captions="",
    ),
    "bing": Release(
        About("VQG_Bing", VQG_LICENCE + OWNERS, VQG_FROM),
        dict.fromkeys(SPLITS, ""),
        ("bing_{split}_all.csv",),
        captions="",
    ),
}
