"""`mmgen score`: predictions and references of every format, matched, or refused with the line; the metrics."""

import json

import pytest
from kit import toys
from kit.scoring import FAST, cells, score, write
from mmgen_metrics.scoring.files import read_predictions, read_references
from mmgen_metrics.scoring.systems import metrics

from mmgen import DataError
from mmgen.registry import installed


@pytest.mark.parametrize(
    ("name", "value", "lines"),
    [
        ("coco.json.gz", [{"image_id": 9, "caption": "a dog"}, {"image_id": 25, "caption": "two cats"}], False),
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
    ],
)
def test_predictions_of_every_format_are_read(tmp_path, name, value, lines):
    assert read_predictions(write(tmp_path / name, value, lines)) == {"9": ["a dog"], "25": ["two cats"]}


def test_several_texts_per_id_are_read(tmp_path):
    for rows in ([{"id": "a", "questions": [{"text": "x"}, {"text": "y"}]}], [{"id": "a", "text": t} for t in "xy"]):
        assert read_predictions(write(tmp_path / "rows.jsonl", rows, True)) == {"a": ["x", "y"]}


def test_values_are_read_if_metrics_judge_more_than_texts(tmp_path):
    file = write(tmp_path / "rows.jsonl", [{"id": "9", "value": {"label": "red"}, "score": 0.5}], True)
    assert read_predictions(file, kinds={"label", "text"}) == {"9": [{"label": "red"}]}
    with pytest.raises(DataError, match="rows.jsonl, entry 1: no text; give one of .*; the keys are id, value, score"):
        read_predictions(file)


TEXTS = ((9, "a dog"), (9, "the dog"), (25, "cats"))
COCO = {"annotations": [{"id": n, "image_id": image, "caption": text} for n, (image, text) in enumerate(TEXTS)]}
VQA = {"questions": [{"question_id": n, "image_id": i, "question": text} for n, (i, text) in enumerate(TEXTS)]}
JSONL = [{"id": "9", "references": ["a dog", "the dog"]}, {"id": "25", "questions": ["cats"]}]


@pytest.mark.parametrize(("name", "value"), [("coco.json", COCO), ("vqa.json", VQA), ("own.jsonl", JSONL)])
def test_references_of_every_format_are_grouped_by_image(tmp_path, name, value):
    references = read_references(write(tmp_path / name, value, name.endswith("l")), installed())
    assert {example.id: example.targets for example in references} == {
        "9": ("a dog", "the dog"),
        "25": ("cats",),
    }


def test_the_data_set_of_a_recipe_gives_references(tmp_path):
    recipe = tmp_path / "small.toml"
    recipe.write_text(toys.recipe(data={"train_size": 3, "val_size": 2, "test_size": 4}))
    references = read_references(recipe, installed())
    assert [example.id for example in references] == [f"test-0000{n}" for n in range(4)]
    assert len(read_references(recipe, installed(), split="val")) == 2
    rows = [{"id": example.id, "text": example.targets[0]} for example in references]
    out = tmp_path / "out.json"
    options = (*FAST, "--metric", "discovery", "--json", out)
    result = score(write(tmp_path / "p.jsonl", rows, True), "--references", recipe, *options)
    assert result.exit_code == 0, result.output
    table = cells(result.output)
    assert table["BLEU-1"][0] == "100.00" and table["relevance"][0] == "100.00"
    saved = json.loads(out.read_text())
    assert saved["ids"] == [row["id"] for row in rows] and saved["rows"]["p.jsonl"]["relevance"]["value"] == 100
    assert saved["per_example"]["p.jsonl"]["relevance"] == [100.0] * 4


def test_ids_with_a_slash_survive(tmp_path):
    write(tmp_path / "g.jsonl", [{"id": "test-00000/0", "text": "a"}, {"id": "test-00000/1", "text": "b"}], True)
    assert read_predictions(tmp_path / "g.jsonl") == {"test-00000/0": ["a"], "test-00000/1": ["b"]}
    write(tmp_path / "p.jsonl", [{"id": "val2014/COCO_val2014_000000000009.jpg", "text": "a"}], True)
    assert list(read_predictions(tmp_path / "p.jsonl")) == ["9"]


@pytest.mark.slow
def test_metrics_are_chosen_by_name_or_by_default(tmp_path):
    default = metrics((), (), installed())
    assert {"captioneval", "diversity"} <= default.keys()
    assert all(config.judges == {"text"} for config in default.values())  # VQA's accuracy does not judge questions
    references = write(tmp_path / "r.json", {"1": ["a dog runs"], "2": ["a cat sits"]})
    predictions = write(tmp_path / "p.json", {"1": "a dog runs", "2": "a cat"})
    result = score(predictions, "--references", references, "--set", "captioneval.meteor=false")
    # without scores for these references
    assert result.exit_code == 0 and "relevance" not in cells(result.output) and "distinct-1" in cells(result.output)
