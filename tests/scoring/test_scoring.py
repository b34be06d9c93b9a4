"""Scoring files of predictions: formats, mismatched files, intervals, two systems, and the best of several texts."""

import gzip
import json
import math
import random

import numpy as np
import pytest
from click.testing import CliRunner

import mmgen
from mmgen import DataError, RecipeError
from mmgen.cli import main
from mmgen.registry import installed
from mmgen.scoring import System, Uncertainty, compare, metrics, pair, read_predictions, read_references
from mmgen.scoring.intervals import (
    around,
    bootstrap,
    groups_of,
    interval,
    jackknife,
    jackknife_probability,
    means_over_examples,
    probability,
    randomisation,
)
from mmgen.tensors import Example, Scores

FAST = ["--metric", "captioneval", "--set", "captioneval.meteor=false", "--set", "captioneval.tokenizer=own"]


def write(path, value, lines=False):
    text = "\n".join(json.dumps(row) for row in value) if lines else json.dumps(value)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def score(*arguments):
    return CliRunner().invoke(main, ["score", *map(str, arguments)])


def cells(output: str) -> dict[str, list[str]]:
    """First cell of every row of the table -> the other cells."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in output.splitlines() if line.startswith("| ")
    ]
    return {row[0]: row[1:] for row in rows}


def registry():
    return installed()


# --- files


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
        (
            "key,questions\n9,a dog?\n",
            "2: no id; give one of image_id, id, image, question_id; the keys are key, questions",
        ),
        ("id,text\n9,a dog?\n,cats?\n", '3: "id" is empty'),
        ("id,text,text\n9,a,b\n", "1: duplicate column 'text'; keep one of them"),
        ("id,text\n9,a,b\n", "2: 3 values under 2 columns; put texts with a comma in quotation marks"),
        ("\nid,text\n9\n", "3: 1 value under 2 columns; "),
        ('id,text\n9,"a\n', "2: a quotation mark is not closed before the end of the file; close it"),
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
        (
            '{"id": "b", "text": "x"}\n{"text": "x"}',
            "p.jsonl:2: no id; give one of image_id, id, image, question_id; the keys are text",
        ),
        ('{"id": "b", "text": "x"}\n{"id"', "p.jsonl:2: not JSON: Expecting ':' delimiter: line 1 column 6 (char 5)"),
        ('{"id": "b", "text": 7}', "p.jsonl, entry 1: text must be a string or a list of strings, not 7"),
        ('["x"]', 'p.jsonl, entry 1: expected {"id": ..., "text": ...} but got "x"'),
        ("", "p.jsonl: contains no predictions"),
        (
            json.dumps({"id": "b", "texts": ["x", "x" * 1_000_001]}),
            "p.jsonl, entry 1: texts has 1,000,001 characters; the limit is 1,000,000; the file is damaged",
        ),
    ],
    ids=["no text", "no id", "cut short", "a number", "a bare text", "empty", "a text without end"],
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


# --- metrics


def test_metrics_are_chosen_by_name_or_by_default():
    default = metrics((), (), registry())
    assert {"captioneval", "diversity"} <= default.keys()
    assert all(config.judges == {"text"} for config in default.values())  # VQA's accuracy does not judge questions
    assert metrics(["captioneval"], ["captioneval.meteor=false"], registry())["captioneval"].meteor is False
    with pytest.raises(RecipeError) as error:
        metrics(["diversity"], ["captioneval.meteor=false"], registry())
    assert str(error.value) == "--set captioneval.meteor=false: write METRIC.KEY=VALUE; the metrics are: diversity"
    with pytest.raises(RecipeError) as error:
        metrics(["captioneval"], ["captioneval.metoer=false"], registry())
    assert str(error.value) == "--set captioneval.metoer=false: metoer: no such key; did you mean 'meteor'?"


def test_a_metric_without_scores_for_these_references_is_left_out(tmp_path):
    references = write(tmp_path / "r.json", {"1": ["a dog runs"], "2": ["a cat sits"]})
    result = score(
        write(tmp_path / "p.json", {"1": "a dog runs", "2": "a cat"}),
        "--references",
        references,
        "--set",
        "captioneval.meteor=false",
    )
    assert result.exit_code == 0 and "relevance" not in cells(result.output) and "distinct-1" in cells(result.output)


def test_bleu_1_by_hand(tmp_path):
    """5 of 6 words are right (the second "the" is clipped), 6 words against the closest references' 3 and 4."""
    references = write(tmp_path / "r.json", {"1": ["the cat sat", "the cat sat here now"], "2": ["a dog runs far"]})
    predictions = write(tmp_path / "p.json", {"1": "the the cat", "2": "a dog runs"})
    table = cells(score(predictions, "--references", references, *FAST).output)
    assert table["BLEU-1"][0] == f"{100 * 5 / 6 * math.exp(1 - 7 / 6):.2f}"
    per_question = cells(score(predictions, "--references", references, "--references-per", "question", *FAST).output)
    right, written, reference_length = 2 + 2 + 3, 9, 3 + 5 + 4  # a single reference is the closest one
    assert per_question["BLEU-1"][0] == f"{100 * right / written * math.exp(1 - reference_length / written):.2f}"


def test_files_of_real_captions_score_as_in_pycocoevalcap(real_data, tmp_path):
    """Golden: every COCO image's first caption scored against its other captions, through files, command and JSON."""
    from collections import defaultdict

    from mmgen_captioneval.ptb import tokenise
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    images = defaultdict(list)
    for row in json.loads(gzip.decompress((real_data / "coco/captions.json.gz").read_bytes()))["annotations"]:
        images[row["image_id"]].append(row["caption"])
    images = dict(list(images.items())[1000:1300])
    predictions = write(
        tmp_path / "results.json", [{"image_id": image, "caption": texts[0]} for image, texts in images.items()]
    )
    rows = [
        {"image_id": image, "id": n, "caption": text}
        for image, texts in images.items()
        for n, text in enumerate(texts[1:])
    ]
    references = write(tmp_path / "captions.json.gz", {"annotations": rows})
    result = score(predictions, "--references", references, *FAST, "--json", tmp_path / "out.json")
    assert result.exit_code == 0, result.output
    candidates = {image: [" ".join(tokenise(texts[0]))] for image, texts in images.items()}
    targets = {image: [" ".join(tokenise(text)) for text in texts[1:]] for image, texts in images.items()}
    bleu = Bleu(4).compute_score(targets, candidates, verbose=0)[0]
    cider, rouge = Cider().compute_score(targets, candidates)[0], Rouge().compute_score(targets, candidates)[0]
    expected = {**{f"BLEU-{n}": value for n, value in enumerate(bleu, 1)}, "ROUGE-L": rouge, "CIDEr": cider}
    saved = json.loads((tmp_path / "out.json").read_text())
    assert saved["values"][str(predictions)] == pytest.approx(
        {name: 100 * value for name, value in expected.items()}, abs=1e-9
    )
    image_rows = saved["per_example"][str(predictions)]
    assert [row["id"] for row in image_rows] == [str(image) for image in images]
    assert np.mean([row["CIDEr"] for row in image_rows]) == pytest.approx(100 * cider)


def test_one_image_has_no_cider_and_the_command_reports_this(tmp_path):
    references = write(tmp_path / "r.json", {"1": ["a dog runs", "the dog runs"]})
    result = score(write(tmp_path / "p.json", {"1": "a dog runs"}), "--references", references, *FAST)
    assert cells(result.output)["CIDEr"][0] == "-" and cells(result.output)["BLEU-1"][0] == "100.00"
    assert (
        "CIDEr: unavailable, its document frequencies come from the references and one image gives none"
        in result.output
    )


def test_a_split_is_for_recipes(tmp_path):
    references = write(tmp_path / "r.json", {"1": "a"})
    result = score(references, "--references", references, "--split", "val")
    assert (
        result.output
        == f"error: --references {references}: is a file; --profile, --split and --step need a recipe or a run folder\n"
    )


def test_the_share_of_unseen_texts(tmp_path):
    references = write(tmp_path / "r.json", {"1": "a", "2": "b", "3": "c", "4": "d"})
    train = write(tmp_path / "t.jsonl", [{"id": 1, "questions": ["What is it ?", "who sits here"]}], True)
    predictions = write(
        tmp_path / "p.json", {"1": "what is it?", "2": "Who sits here?", "3": "who sits there?", "4": "what, is it"}
    )
    result = score(predictions, "--references", references, "--train", train, "--metric", "diversity")
    assert cells(result.output)["unseen"][0] == "25.00"


# --- intervals


@pytest.mark.slow
def test_the_bootstrap_has_the_right_coverage():
    """Of 200 samples of size 60 from a known mean, about 95 % of the intervals contain the mean."""
    draw = np.random.default_rng(1)
    hits = 0
    for trial in range(200):
        low, high = interval(bootstrap({"x": draw.normal(5, 2, 60)}, [str(n) for n in range(60)], 400, trial)["x"])
        hits += low <= 5 <= high
    assert 0.89 <= hits / 200 <= 0.985


def test_questions_of_one_image_are_drawn_together():
    values = {"x": [0.0, 0.0, 0.0, 10.0, 10.0, 10.0] * 10}
    alone = bootstrap(values, [str(n) for n in range(60)], 2000, 0)["x"]
    together = bootstrap(values, [str(n // 3) for n in range(60)], 2000, 0)["x"]
    assert together.std() / alone.std() == pytest.approx(math.sqrt(3), rel=0.1)
    assert alone.mean() == pytest.approx(5, abs=0.2)


def test_a_score_of_some_examples_is_resampled_over_these():
    values, groups = [50.0, None, 100.0, None, 0.0, None, None, 100.0], list("aabbccdd")
    scores = Scores({"x": 62.5, "y": 50.0}, {"x": values, "y": [None] * 8})
    assert means_over_examples(scores) == {"x": values}
    draw, means = np.random.default_rng(3), []
    for _ in range(200):
        drawn = ["abcd"[place] for place in draw.integers(4, size=4)]
        means.append(
            np.mean([v for group in drawn for g, v in zip(groups, values, strict=True) if g == group and v is not None])
        )
    assert bootstrap({"x": values}, groups, 200, 3)["x"] == pytest.approx(np.array(means))
    rare = bootstrap({"x": [1.0, 1.0, *[None] * 6], "one": [1.0, *[None] * 7]}, list("abcdefgh"), 200, 0)
    assert [*rare] == ["x"] and np.isnan(rare["x"]).any() and interval(rare["x"]) == (1, 1)
    assert probability(rare["x"], 2) == 0.5


def test_examples_of_one_picture_are_drawn_together():
    facts = Example("q1", {"image": "9"}, facts={"group": "g"}), Example("q2", {"image": ("9", "8")}), Example("q3", {})
    assert groups_of([Example("q0", {"image": "9"}), *facts]) == ["9", "g", "q2", "q3"]


def test_the_jackknife_of_a_mean_is_its_standard_error():
    values = np.random.default_rng(2).normal(0, 3, 2000)
    error = jackknife(
        lambda places: {"mean": float(values[places].mean()), "none": None}, [str(n) for n in range(2000)], 0
    )
    assert error.keys() == {"mean"} and error["mean"] == pytest.approx(3 / math.sqrt(2000), rel=0.35)
    assert around(1.0, 0.1) == pytest.approx((1 - 0.209302405, 1 + 0.209302405))
    assert jackknife(lambda places: {}, ["few"] * 40, 0) == {}


def test_a_probability_is_two_sided_and_at_least_one_over_the_resamples():
    assert probability(np.ones(1000), 40) == 0.001 and probability(np.array([-1.0, 1.0]), 40) == 1.0
    assert probability(np.array([-1.0] * 20 + [1.0] * 980), 40) == pytest.approx(0.04)


def test_few_pairs_are_never_significant():
    """Three pairs with equal differences: the exact sign test has p = 1/4, although all resamples agree."""
    assert [probability(np.ones(1000), groups) for groups in (1, 3, 6)] == [1.0, 0.25, 2**-5]
    comparison = compare([System("a", [["t0"]]), System("b", [["no"]])], examples(1), {"w": Words()})
    assert comparison.intervals == {} == comparison.probabilities and comparison.values["difference"]["right"] == 100


def test_missing_intervals_are_explained(tmp_path):
    for count, note in (
        (1, "no intervals: all examples have the same image, so the variation between images is unknown"),
        (3, "no interval for BLEU-1, BLEU-2, BLEU-3, BLEU-4: not a mean over examples; the jackknife needs 20 images"),
    ):
        references = write(
            tmp_path / "r.json", {str(n): ["what color is the dog", f"where are {n} cats"] for n in range(count)}
        )
        texts = write(
            tmp_path / "p.json", {str(n): ["what color is the cat", "where are two cats"][n % 2] for n in range(count)}
        )
        output = score(texts, "--references", references, *FAST, "--corpus-intervals").output
        assert note in output.splitlines() and "jackknife, 20 blocks" not in output


def test_the_jackknifes_p_is_students():
    assert jackknife_probability(2.093, 1.0) == pytest.approx(0.05, abs=1e-4) == jackknife_probability(-2.093, 1.0)
    assert jackknife_probability(0.0, 0.0) == 1.0 and jackknife_probability(1.0, 0.0) == 0.0


def differences(first, second):
    """A difference of means in the form that `randomisation` takes."""
    first, second = np.array(first, float), np.array(second, float)
    return lambda swapped: {"mean": float(np.where(swapped, second - first, first - second).mean()), "none": None}


def test_randomisation_is_the_permutation_test():
    """Differences 1 2 3 4 5 6: 2 of the 64 swaps are as extreme. Differences 1 1 1 1 1 -1: 14 of 64."""
    groups = [str(n) for n in range(6)]
    probabilities = randomisation(differences([1, 2, 3, 4, 5, 6], [0] * 6), groups, 8000, 0)
    assert probabilities.keys() == {"mean"} and probabilities["mean"] == pytest.approx(2 / 64, abs=0.006)
    assert randomisation(differences([1, 1, 1, 1, 1, -1], [0] * 6), groups, 8000, 1)["mean"] == pytest.approx(
        14 / 64, abs=0.02
    )
    together = randomisation(differences([1] * 6, [0] * 6), list("aabbcc"), 4000, 0)[
        "mean"
    ]  # three independent groups, not six
    assert together == pytest.approx(2 / 8, abs=0.025)
    assert randomisation(differences([1], [1]), ["a"], 9, 0)["mean"] == 1.0


def test_randomisation_has_the_stated_error_rate():
    draw = np.random.default_rng(5)
    probabilities = [
        randomisation(differences(draw.normal(size=40), draw.normal(size=40)), [str(n) for n in range(40)], 99, n)[
            "mean"
        ]
        for n in range(200)
    ]
    assert 2 <= sum(p <= 0.05 for p in probabilities) <= 20


@pytest.mark.slow
def test_bleu_of_two_systems_has_a_p_by_randomisation(tmp_path):
    draw = random.Random(0)
    words = "what color is the red dog near a big tree".split()
    reference_texts = {str(n): [" ".join(draw.choices(words, k=6))] for n in range(30)}
    references = write(tmp_path / "r.json", reference_texts)
    good = write(
        tmp_path / "good.json", {n: texts[0] if int(n) % 2 else "what is near" for n, texts in reference_texts.items()}
    )
    poor = write(tmp_path / "poor.json", dict.fromkeys(reference_texts, "what color is the dog"))
    result = score(
        good,
        "--references",
        references,
        "--against",
        poor,
        *FAST,
        "--randomisations",
        19,
        "--json",
        tmp_path / "o.json",
    )
    assert result.exit_code == 0, result.output
    assert cells(result.output)["BLEU-1"][-1] == "0.050" and cells(result.output)["BLEU-4"][-1] == "0.050"
    saved = json.loads((tmp_path / "o.json").read_text())
    assert saved["tests"]["BLEU-1"] == "randomisation" and saved["tests"]["CIDEr"] == "bootstrap"
    assert "; approximate randomisation, two-sided, 19 shuffles for BLEU-1, BLEU-2, BLEU-3" in result.output
    same = score(good, "--references", references, "--against", good, *FAST, "--randomisations", 9)
    assert cells(same.output)["BLEU-4"][-1] == "1.000"
    alone = score(good, "--references", references, "--randomisations", 9)
    assert alone.output == "error: --randomisations: needs two systems; give the other predictions with --against\n"


class Words(mmgen.MetricConfig):
    """Share of correct texts (a mean over examples), and the number of different texts (not a mean)."""

    type: str = "words"

    def build(self):
        class Metric:
            def score(self, generations, examples):
                values = [100.0 * (g.text in e.targets) for g, e in zip(generations, examples, strict=True)]
                return Scores(
                    {"right": sum(values) / len(values), "different": float(len({g.text for g in generations}))},
                    {"right": values},
                )

        return Metric()


def many(count: int, right: float, seed: int) -> System:
    draw = random.Random(seed)
    return System(f"s{right}", [[f"t{n}" if draw.random() < right else "wrong"] for n in range(count)])


def examples(count: int) -> list[Example]:
    return [Example(str(n), {}, (f"t{n}",)) for n in range(count)]


def test_two_systems_are_compared_in_pairs():
    comparison = compare(
        [many(300, 0.8, 1), many(300, 0.5, 2)], examples(300), {"w": Words()}, uncertainty=Uncertainty(corpus=True)
    )
    first, second = comparison.values["s0.8"], comparison.values["s0.5"]
    assert comparison.values["difference"]["right"] == first["right"] - second["right"]
    low, high = comparison.intervals["difference"]["right"]
    assert 0 < low < first["right"] - second["right"] < high and comparison.probabilities["right"] == 0.001
    assert comparison.intervals["s0.8"].keys() == {"right", "different"}
    assert (
        comparison.tests == {"right": "bootstrap", "different": "jackknife"}
        and comparison.probabilities["different"] < 0.001
    )
    same = compare([many(300, 0.8, 1), System("again", many(300, 0.8, 1).texts)], examples(300), {"w": Words()})
    assert same.intervals["difference"]["right"] == (0.0, 0.0) and same.probabilities["right"] == 1.0
    assert same.intervals["s0.8"].keys() == {"right"}


def test_the_best_of_several_texts():
    texts = [["wrong", "t0"], ["t1", "wrong"], ["wrong"], ["wrong", "no", "t3"]]
    comparison = compare([System("s", texts)], examples(4), {"w": Words()})
    assert comparison.values["s"]["right"] == 25 and comparison.oracle["s"] == {"right": 75.0}


@pytest.mark.slow
def test_the_command_shows_pairs_intervals_and_the_best_of_several(tmp_path):
    draw = random.Random(0)
    words = "what color is the red dog near a big tree".split()
    reference_texts = {str(n): [" ".join(draw.choices(words, k=6)) for _ in range(3)] for n in range(40)}
    references = write(tmp_path / "r.json", reference_texts)
    good = write(
        tmp_path / "good.json",
        {n: [texts[0] if int(n) % 2 else "what is near", texts[1]] for n, texts in reference_texts.items()},
    )
    poor = write(tmp_path / "poor.json", dict.fromkeys(reference_texts, "what color is the dog"))
    result = score(
        good,
        "--references",
        references,
        "--against",
        poor,
        *FAST,
        "--corpus-intervals",
        "--resamples",
        200,
        "--json",
        tmp_path / "o.json",
    )
    assert result.exit_code == 0, result.output
    table = cells(result.output)
    assert table["metric"] == ["good.json", "95 %", "oracle@2", "poor.json", "95 %", "difference", "95 %", "p"]
    assert table["BLEU-4"][2] == "100.00" and " to " in table["BLEU-4"][1] and float(table["BLEU-4"][-1]) < 0.05
    assert float(table["CIDEr"][0]) - float(table["CIDEr"][3]) == pytest.approx(float(table["CIDEr"][5]), abs=0.02)
    assert (
        "difference: good.json minus poor.json; p: paired bootstrap, two-sided; paired jackknife, two-sided t-test "
        "over 20 blocks for BLEU-1, BLEU-2, BLEU-3, BLEU-4" in result.output
    )
    saved = json.loads((tmp_path / "o.json").read_text())
    assert saved["oracle"]["good.json"]["BLEU-4"] == pytest.approx(100) and len(saved["per_example"]["poor.json"]) == 40
    again = score(good, "--references", references, "--against", good, *FAST)
    assert cells(again.output)["CIDEr"][-1] == "1.000"


# --- mmgen's own files, and errors


def test_ids_with_a_slash_survive(tmp_path):
    write(tmp_path / "g.jsonl", [{"id": "test-00000/0", "text": "a"}, {"id": "test-00000/1", "text": "b"}], True)
    assert read_predictions(tmp_path / "g.jsonl") == {"test-00000/0": ["a"], "test-00000/1": ["b"]}
    write(tmp_path / "p.jsonl", [{"id": "val2014/COCO_val2014_000000000009.jpg", "text": "a"}], True)
    assert list(read_predictions(tmp_path / "p.jsonl")) == ["9"]


def test_two_metrics_of_one_type_have_separate_columns():
    from mmgen.evaluation.score import merge_metrics

    first, second = Scores({"bleu": 1.0, "only": 3.0}, {"bleu": [1.0]}, ("a",)), Scores({"bleu": 2.0}, {}, ("a",))
    assert merge_metrics({"short": first, "long": second}) == Scores(
        {"short.bleu": 1.0, "only": 3.0, "long.bleu": 2.0}, {"short.bleu": [1.0]}, ("a",)
    )


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (["--seed", "-1"], 2, "Error: Invalid value for '--seed': -1 is not in the range x>=0."),
        (["--json", "."], 2, "Error: Invalid value for '--json': File '.' is a directory."),
        (["--metric", "diversityy"], 1, "error: --metric diversityy: no metric is called 'diversityy'; did you mean "
         "'diversity'?"),
        (["--json", "p.jsonl"], 1, "error: --json p.jsonl: is also an input file and would be overwritten; choose "
         "another name"),
        (["--json", "r.jsonl"], 1, "error: --json r.jsonl: is also an input file and would be overwritten; choose "
         "another name"),
        (["--json", "/dev/null"], 1, "error: --json /dev/null: is a device, which would be replaced; choose another "
         "name"),
        (["--against", "odd.jsonl"], 1, 'error: odd.jsonl, entry 1: "id" must be a string or an integer, not 1.0'),
    ],
)  # fmt: skip
def test_errors_of_the_score_command(tmp_path, monkeypatch, more, code, message):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "p.jsonl", [{"id": "1", "text": "a"}], True)
    write(tmp_path / "r.jsonl", [{"id": "1", "text": "a"}], True)
    write(tmp_path / "odd.jsonl", [{"id": 1.0, "text": "a"}], True)
    done = score("p.jsonl", "--references", "r.jsonl", "--resamples", "0", "--metric", "diversity", *more)
    assert done.exit_code == code and message in done.stderr.splitlines(), done.stderr


def test_the_signature_says_question_if_references_are_per_question(tmp_path):
    references = write(
        tmp_path / "r.jsonl",
        [{"id": "a", "references": ["is it red?", "what is it?"]}, {"id": "b", "text": "who?"}],
        True,
    )
    predictions = write(tmp_path / "p.jsonl", [{"id": "a", "text": "is it?"}, {"id": "b", "text": "who is it?"}], True)
    per_image = score(predictions, "--references", references, *FAST).output
    assert (
        "references grouped per image (1.5 an image)" in per_image and "2 examples, references per image" in per_image
    )
    per_question = score(predictions, "--references", references, "--references-per", "question", *FAST).output
    assert "references grouped per question (1.0 a question)" in per_question and "per image (" not in per_question
    assert "3 examples, references per question; " in per_question


def test_empty_or_equal_texts_are_reported(tmp_path):
    references = write(tmp_path / "r.jsonl", [{"id": n, "text": f"what is it {n}"} for n in range(12)], lines=True)
    empty = write(tmp_path / "empty.jsonl", [{"id": n, "text": "?" * (n % 3)} for n in range(12)], lines=True)
    same = write(tmp_path / "same.jsonl", [{"id": n, "text": "why ?" if n else "who ?"} for n in range(12)], lines=True)
    done = score(empty, "--references", references, "--against", same, *FAST)
    assert done.exit_code == 0
    assert "empty.jsonl: 12 of 12 texts have no word in them; the model says little of its input: train" in done.output
    assert "same.jsonl: 11 of 12 texts are the same ('why ?'); the model says little of its input: train" in done.output
    well = write(tmp_path / "well.jsonl", [{"id": n, "text": f"is it {n} ?"} for n in range(12)], lines=True)
    assert "says little" not in score(well, "--references", references, *FAST).output


def test_a_table_with_an_unknown_file_type_is_refused(tmp_path):
    (tmp_path / "q.txt").write_text("image_id,questions\n1,What?\n")
    with pytest.raises(DataError) as caught:
        read_references(tmp_path / "q.txt", registry())
    assert str(caught.value).startswith(f"{tmp_path}/q.txt:1: not JSON: ")
    assert str(caught.value).endswith("; give JSON or JSONL, or a table with a name ending in .csv or .tsv")
