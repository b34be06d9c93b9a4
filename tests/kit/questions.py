"""Made-up files of questions and captions."""

import json
from pathlib import Path

import pytest
from mmgen_data import Vqa, Vqg

from mmgen.errors import DataError

HEADER = "image_id,image_url,questions"


def vqa_file(path: Path, *questions: tuple) -> Path:
    items = [
        {"image_id": image, "question": text, "question_id": number} for number, (image, text) in enumerate(questions)
    ]
    path.write_text(json.dumps({"questions": items}))
    return path


def caption_file(path: Path, *captions: tuple) -> Path:
    path.write_text(
        json.dumps(
            {"annotations": [{"id": number, "image_id": image, "caption": text} for number, image, text in captions]}
        )
    )
    return path


def vqa(folder: Path, **options) -> Vqa:
    """A config whose only split is "train"."""
    return Vqa(
        folder=folder,
        files={"train": "q.json"},
        **{"caption_files": (), "validation_split": "", "test_split": "train", **options},
    )


def vqg(folder: Path, text: str | bytes) -> Vqg:
    (folder / "q.csv").write_bytes(text.encode() if isinstance(text, str) else text)
    return Vqg(folder=folder, files={"train": "q.csv"}, caption_files=(), validation_split="", test_split="train")


def load_error(config) -> str:
    with pytest.raises(DataError) as caught:
        config.build().split("train")
    return str(caught.value)
