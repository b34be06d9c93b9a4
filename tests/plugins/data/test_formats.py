"""Questions as JSON lines."""

import json
from pathlib import Path

import pytest
from kit.questions import load_error
from mmgen_data import Table

from mmgen.testing import DatasetSuite


def jsonl(folder: Path, *lines: str, **options) -> Table:
    (folder / "q.jsonl").write_text("\n".join(lines), newline="")
    return Table(folder=folder, files={"train": "q.jsonl"}, validation_split="", test_split="train", **options)


def test_jsonl_with_a_further_input(tmp_path):
    dataset = jsonl(
        tmp_path,
        '{"id": 1, "image": "a/b.jpg", "caption": "a cat", "questions": ["What?", " Who? "], "audio": "b.wav"}\r',
        "",
        '{"id": "two", "captions": ["x", "y"], "questions": "Why?"}',
    ).build()
    first, second = dataset.split("train")
    assert (first.id, first.inputs, first.targets) == (
        "train-1",
        {"image": "b", "caption": ("a cat",), "audio": ("b.wav",)},
        ("What?", "Who?"),
    )
    assert (second.id, second.inputs, second.targets) == ("train-two", {"caption": ("x", "y")}, ("Why?",))


@pytest.mark.parametrize(
    "line, error",
    [
        (
            '{"id": 2, "questions": ["\\ud800"]}',
            ":2: questions[0] contains '\\ud800', which is not",
        ),
    ],
    ids=lambda value: value[:40],
)
def test_bad_jsonl(tmp_path, line, error):
    text = load_error(jsonl(tmp_path, '{"id": 1, "questions": ["What?"]}', line))
    assert text.startswith(f"{tmp_path / 'q.jsonl'}{error}")
    assert "\n" not in text


def test_a_line_without_a_caption_among_lines_with_captions(tmp_path, caplog):
    lines = ['{"id": "a", "caption": "a cat", "questions": ["What?"]}', '{"id": "bare", "questions": ["Why?"]}']
    dataset = jsonl(tmp_path, *lines).build()
    assert [example.id for example in dataset.split("train")] == ["train-a"]
    assert caplog.messages == ["table train: left out 1 example without a caption"]
    bare = jsonl(tmp_path, lines[1]).build()  # where no line has a caption, none is missing
    assert len(bare.split("train")) == 1


class TestJsonl(DatasetSuite):
    @pytest.fixture(autouse=True)
    def files(self, tmp_path):
        for split in ("train", "val", "test"):
            (tmp_path / f"{split}.jsonl").write_text(
                json.dumps({"id": 1, "image": f"{split}.jpg", "caption": "a", "questions": ["What?"]})
            )
        self.folder = tmp_path

    def config(self):
        return Table(folder=self.folder)
