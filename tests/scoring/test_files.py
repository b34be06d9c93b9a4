"""Predictions and references are read from files of every format, matched, and refused with the line."""

import pytest
from kit.scoring import FAST, cells, score, write

from mmgen import DataError
from mmgen.registry import installed
from mmgen.scoring import pair, read_predictions, read_references


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


VQG_HEADER = "image_id,image_url,questions,captions\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("empty_lines.csv", '\n\nid,text\n\n9,a dog?\n9,"who, me?"\n\n25,cats?\n'),
        ("vqg.csv", VQG_HEADER + '9,u,"a dog?---who, me?",d\n25,u,cats?,c\n'),
        ("own.TSV", 'question\timage\r\na dog?\tCOCO_val2014_000000000009.jpg\r\n"who, me?"\t9\r\ncats?\t25\r\n'),
    ],
)
def test_a_table_is_read_by_the_names_of_its_columns(tmp_path, name, text):
    """As references and as predictions; other columns are ignored."""
    (tmp_path / name).write_text(text, newline="")
    texts = {"9": ["a dog?", "who, me?"], "25": ["cats?"]}
    assert read_predictions(tmp_path / name) == texts
    references = read_references(tmp_path / name, registry())
    assert {example.id: list(example.targets) for example in references.examples} == texts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image_id,qs\n9,a dog?\n", "2: no text; give one of references, questions, targets, captions, texts, "),
        ("id,text\n9,a,b\n", "2: values: 3, columns: 2; put texts with a comma in quotation marks"),
    ],
)
def test_errors_in_a_table_name_the_line(tmp_path, text, message):
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(DataError) as error:
        read_references(tmp_path / "r.csv", registry())
    assert str(error.value).startswith(f"{tmp_path / 'r.csv'}:{message}")


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
    assert {example.id: example.targets for example in references.examples} == {
        "9": ("a dog", "the dog"),
        "25": ("cats",),
    }
    assert references.seen is None


@pytest.mark.parametrize(
    ("name", "value", "ids"),
    [
        ("coco.json", COCO, ["1", "2", "3"]),
        ("vqa.json", VQA, ["90", "91", "250"]),
        ("own.jsonl", JSONL, ["9#1", "9#2", "25"]),
    ],
)
def test_references_per_question_are_matched_with_the_text_of_their_image(tmp_path, name, value, ids):
    path = write(tmp_path / name, value, name.endswith("l"))
    references = read_references(path, registry(), "question")
    assert [example.id for example in references.examples] == ids
    assert [example.targets for example in references.examples] == [("a dog",), ("the dog",), ("cats",)]
    texts = [texts for _, texts in pair({"9": ["x"], "25": ["y"]}, references, path)]
    assert texts == [["x"], ["x"], ["y"]]


def test_the_data_set_of_a_recipe_gives_references_and_training_questions(tmp_path):
    recipe = tmp_path / "small.toml"
    recipe.write_text(
        'name = "small"\n[backbone]\ntype = "bert"\n[inputs.caption]\ntype = "text"\n[generator]\ntype = "masked"\n'
        '[steps.one]\ninputs = ["caption"]\ntrain = ["backbone"]\n[data]\ntype = "scenes"\ntrain_size = 3\nval_size = '
        "2\ntest_size = 4\n"
    )
    references = read_references(recipe, registry())
    assert [example.id for example in references.examples] == [f"test-0000{n}" for n in range(4)] and references.seen
    assert len(read_references(recipe, registry(), split="val").examples) == 2
    first = references.examples[0]
    rows = [{"id": example.id, "text": example.targets[0]} for example in references.examples]
    result = score(write(tmp_path / "p.jsonl", rows, True), "--references", recipe, *FAST, "--metric", "discovery")
    assert result.exit_code == 0, result.output
    table = cells(result.output)
    assert table["BLEU-1"][0] == "100.00" and table["relevance"][0] == "100.00" and "unseen" in table
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
        result.exit_code == 0
        and cells(result.output)["BLEU-4"][0] == "100.00"
        and "2 of 4 examples, references per image" in result.output
    )
    unmatched = write(tmp_path / "s.jsonl", [{"id": "x", "text": "a"}], True)
    result = score(unmatched, "--references", references, *FAST, "--partial")
    assert result.output == f"error: {unmatched}: no id (x) is among the references (0, 1, 2, ...)\n"
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


def test_a_table_with_an_unknown_file_type_is_refused(tmp_path):
    (tmp_path / "q.txt").write_text("image_id,questions\n1,What?\n")
    with pytest.raises(DataError) as caught:
        read_references(tmp_path / "q.txt", registry())
    assert str(caught.value).startswith(f"{tmp_path}/q.txt:1: not valid JSON: ")
    assert str(caught.value).endswith("; give JSON or JSONL, or a table with a name ending in .csv or .tsv")
