"""Made-up files of questions and captions."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from mmgen_questions import Vqa, Vqg

from mmgen.errors import DataError

ALL_WELL = dict.fromkeys(
    [
        "without_caption",
        "without_picture",
        "without_question",
        "empty_questions",
        "duplicates",
        "empty_captions",
        "duplicate_captions",
    ],
    0,
)


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


FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.sampled_from(["id", "image", "caption", "questions"]), inner, max_size=4)
    ),
    max_leaves=8,
)


def check_usable_or_refused(config) -> None:
    """Either examples, each with texts on one line, or a DataError on one line."""
    try:
        examples = config.build().split("train")
    except DataError as error:
        assert "\n" not in str(error)
        return
    assert len({example.id for example in examples}) == len(examples) > 0
    for example in examples:
        assert example.targets and all(text and "\n" not in text for text in example.targets)
        repr(example).encode()
        " ".join(example.targets).encode()
