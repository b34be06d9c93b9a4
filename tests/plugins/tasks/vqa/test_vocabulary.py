"""Vocabularies of answers: by frequency, and from files."""

import json
import pickle

import pytest
from kit import published
from mmgen_tasks import VqaAnswers
from mmgen_tasks.vqa.vocabulary import read_vocabulary

from mmgen.errors import DataError


def test_the_vocabulary_has_the_most_common_answers(tmp_path):
    published.vqa(tmp_path)
    questions, annotations = published.vqa_rows("train")
    for row in annotations[1:]:
        row["multiple_choice_answer"] = "The dog"
    (tmp_path / "v2_mscoco_train2014_annotations.json").write_text(json.dumps({"annotations": annotations}))
    assert VqaAnswers(folder=tmp_path, num_answers=1).build().vocabularies() == {"answers": ("dog",)}
    assert VqaAnswers(folder=tmp_path, min_count=2).build().vocabularies() == {"answers": ("dog",)}
    with pytest.raises(DataError, match=r"annotations.json: none of the 2 answers occurs 3 times"):
        VqaAnswers(folder=tmp_path, min_count=3).build().vocabularies()


def test_the_description_identifies_the_vocabulary(tmp_path):
    published.vqa(tmp_path)
    (tmp_path / "a.txt").write_text("no\nyes")
    (tmp_path / "b.txt").write_text("yes\nno")
    descriptions = [
        VqaAnswers(folder=tmp_path, vocabulary=name).build().describe() for name in ("a.txt", "b.txt", "a.txt")
    ]
    first, second, third = (description["answers_fingerprint"] for description in descriptions)
    assert first == third != second and descriptions[0]["answers"] == 2


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.txt", b"<unk>\r\nno\nyes\n\n"),
        ("a.json", b'["<unk>", "no", "yes"]'),
        ("a.json", b'{"yes": 2, "<unk>": 0, "no": 1}'),
        ("a.pkl", pickle.dumps(["<unk>", "no", "yes"], 2)),
    ],
)
def test_vocabularies_of_every_form(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    assert read_vocabulary(tmp_path / name) == ("<unk>", "no", "yes")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", "no\nyes\n no", ":3: duplicate 'no', first as line 1"),
        ("a.txt", "no\n\nyes", ":2: the answer is empty"),
        ("a.txt", "\n", ": the file of answers is empty"),
        ("a.json", '["no", 3]', ": answer 2: the answer must be a text, not a number"),
        ("a.json", '{"no": 1, "yes": 2}', ": the answers are not numbered 0 to 1; give a list of answers"),
        ("a.json", "3", ": a file of answers must be a list of strings, not a number"),
    ],
)
def test_vocabularies_that_cannot_be_used(tmp_path, name, data, message):
    (tmp_path / name).write_text(data)
    with pytest.raises(DataError) as error:
        read_vocabulary(tmp_path / name)
    assert str(error.value) == f"{tmp_path / name}{message}"
