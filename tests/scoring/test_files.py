"""Predictions and references are read from files of every format, matched, and refused with the line."""

import pytest
from kit.scoring import FAST, cells, score, write

from mmgen import DataError
from mmgen.registry import installed
from mmgen.scoring import read_predictions, read_references


def registry():
    return installed()


@pytest.mark.parametrize(
    ("name", "value", "lines"),
    [
        ("coco.json", [{"image_id": 9, "caption": "a dog"}, {"image_id": 25, "caption": "two cats"}], False),
        (
            "names.json",
            [
                {"image": "COCO_val2014_000000000009.jpg", "text": "a dog"},
                {"image": "000000000025.jpg", "text": "two cats"},
            ],
            False,
        ),
        ("table.json", {"9": "a dog", "25": ["two cats"]}, False),
        ("rows.jsonl", [{"id": "9", "question": "a dog"}, {"id": "25", "prediction": "two cats"}], True),
        (
            "written.jsonl",
            [
                [{"id": "9", "text": "a dog", "tokens": [1], "score": -1.0}],
                [{"id": "25", "text": "two cats", "tokens": [], "score": 0.0}],
            ],
            True,
        ),
        (
            "asked.jsonl",
            [
                {"id": "9", "questions": [{"text": "a dog", "score": -1}]},
                {"id": "25", "questions": ["two cats"]},
                {"id": "x", "error": "broken"},
            ],
            True,
        ),
        ("one.json.gz", [{"id": 9, "text": "a dog"}, {"id": 25, "text": "two cats"}], False),
    ],
)
def test_predictions_of_every_format_are_read(tmp_path, name, value, lines):
    assert read_predictions(write(tmp_path / name, value, lines)) == {"9": ["a dog"], "25": ["two cats"]}


def test_a_single_line_and_several_texts_per_id_are_read(tmp_path):
    path = write(tmp_path / "one.jsonl", [{"id": "a", "questions": [{"text": "x"}, {"text": "y"}]}], True)
    assert read_predictions(path) == {"a": ["x", "y"]}
    assert read_predictions(
        write(tmp_path / "rows.jsonl", [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}], True)
    ) == {"a": ["x", "y"]}


def test_values_are_read_if_metrics_judge_more_than_texts(tmp_path):
    file = write(tmp_path / "rows.jsonl", [{"id": "9", "value": {"label": "red"}, "score": 0.5}], True)
    assert read_predictions(file, kinds={"label", "text"}) == {"9": [{"label": "red"}]}
    with pytest.raises(DataError, match="rows.jsonl, entry 1: no text; give one of .*; the keys are id, value, score"):
        read_predictions(file)


COCO = {
    "images": [],
    "annotations": [
        {"id": 1, "image_id": 9, "caption": "a dog"},
        {"id": 2, "image_id": 9, "caption": "the dog"},
        {"id": 3, "image_id": 25, "caption": "cats"},
    ],
}


VQA = {
    "questions": [
        {"question_id": 90, "image_id": 9, "question": "a dog"},
        {"question_id": 91, "image_id": 9, "question": "the dog"},
        {"question_id": 250, "image_id": 25, "question": "cats"},
    ]
}


JSONL = [{"id": "9", "references": ["a dog", "the dog"]}, {"id": "25", "questions": ["cats"]}]


@pytest.mark.parametrize(("name", "value"), [("coco.json", COCO), ("vqa.json", VQA), ("own.jsonl", JSONL)])
def test_references_of_every_format_are_grouped_by_image(tmp_path, name, value):
    references = read_references(write(tmp_path / name, value, name.endswith("l")), registry())
    assert {example.id: example.targets for example in references} == {
        "9": ("a dog", "the dog"),
        "25": ("cats",),
    }


def test_the_data_set_of_a_recipe_gives_references(tmp_path):
    recipe = tmp_path / "small.toml"
    recipe.write_text(
        'name = "small"\n[backbone]\ntype = "bert"\n[inputs.caption]\ntype = "text"\n[generator]\ntype = "masked"\n'
        '[steps.one]\ninputs = ["caption"]\ntrain = ["backbone"]\n[data]\ntype = "scenes"\ntrain_size = 3\nval_size = '
        "2\ntest_size = 4\n"
    )
    references = read_references(recipe, registry())
    assert [example.id for example in references] == [f"test-0000{n}" for n in range(4)]
    assert len(read_references(recipe, registry(), split="val")) == 2
    first = references[0]
    rows = [{"id": example.id, "text": example.targets[0]} for example in references]
    result = score(write(tmp_path / "p.jsonl", rows, True), "--references", recipe, *FAST, "--metric", "discovery")
    assert result.exit_code == 0, result.output
    table = cells(result.output)
    assert table["BLEU-1"][0] == "100.00" and table["relevance"][0] == "100.00"
    assert first.targets


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"id": "a"}\n{"id": "b", "text": "x"}',
            "p.jsonl:1: no text; give one of questions, predictions, texts, captions, text, prediction, question, "
            "caption; the keys are id",
        ),
        ('{"id": "b", "text": "x"}\n{"id"', "p.jsonl:2: not valid JSON: Expecting ':' delimiter (column 6)"),
    ],
)
def test_errors_in_predictions_name_the_line(tmp_path, text, message):
    (tmp_path / "p.jsonl").write_text(text)
    with pytest.raises(DataError) as error:
        read_predictions(tmp_path / "p.jsonl")
    assert str(error.value) == f"{tmp_path}/{message}"


def test_mismatched_files_are_refused_and_partial_scores_the_matches(tmp_path):
    references = write(tmp_path / "r.jsonl", [{"id": n, "references": [f"a dog number {n}"]} for n in range(4)], True)
    predictions = write(tmp_path / "p.jsonl", [{"id": n, "text": f"a dog number {n}"} for n in range(2, 7)], True)
    result = score(predictions, "--references", references, *FAST)
    assert result.exit_code == 1 and result.output == (
        f"error: {predictions}: 3 predictions have no references (4, 5, 6); 2 references have no prediction (0, 1); "
        "--partial scores the 2 that have both\n"
    )
    result = score(predictions, "--references", references, *FAST, "--partial")
    assert (
        result.exit_code == 0 and cells(result.output)["BLEU-4"][0] == "100.00" and "2 of 4 examples" in result.output
    )
    unmatched = write(tmp_path / "s.jsonl", [{"id": "x", "text": "a"}], True)
    result = score(unmatched, "--references", references, *FAST, "--partial")
    assert result.output == f"error: {unmatched}: no id (x) is among the references (0, 1, 2, 3)\n"
    result = score(tmp_path / "none.json", "--references", references)
    assert (
        result.exit_code == 1
        and result.output == f"error: {tmp_path}/none.json: cannot be read: No such file or directory\n"
    )


def test_ids_with_a_slash_survive(tmp_path):
    write(tmp_path / "g.jsonl", [{"id": "test-00000/0", "text": "a"}, {"id": "test-00000/1", "text": "b"}], True)
    assert read_predictions(tmp_path / "g.jsonl") == {"test-00000/0": ["a"], "test-00000/1": ["b"]}
    write(tmp_path / "p.jsonl", [{"id": "val2014/COCO_val2014_000000000009.jpg", "text": "a"}], True)
    assert list(read_predictions(tmp_path / "p.jsonl")) == ["9"]
