"""The command `mmgen score`: its table, its notes and its errors."""

import json
import random

import pytest
from kit.scoring import FAST, cells, score, write


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


def test_missing_intervals_are_explained(tmp_path):
    for count, note in (
        (1, "no intervals: all examples have the same image, so the variation between images is unknown"),
        (3, "no interval for distinct-1, distinct-2, unique: not a function of sums over examples, or all are equal"),
    ):
        references = write(tmp_path / "r.json", {str(n): ["what is it", f"where are {n} cats"] for n in range(count)})
        texts = write(tmp_path / "p.json", {str(n): ["what", f"are {n} cats"][n % 2] for n in range(count)})
        output = score(texts, "--references", references, *FAST, "--metric", "diversity").output
        assert note in output.splitlines(), output


def saved_p(path):
    return json.loads(path.read_text())["probabilities"]


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
        "--resamples",
        200,
        "--json",
        tmp_path / "o.json",
    )
    assert result.exit_code == 0, result.output
    table = cells(result.output)
    assert table["metric"] == ["good.json", "95 %", "poor.json", "95 %", "difference", "95 %", "p"]
    assert " to " in table["BLEU-4"][1] and float(table["BLEU-4"][-1]) < 0.05
    assert float(table["CIDEr"][0]) - float(table["CIDEr"][2]) == pytest.approx(float(table["CIDEr"][4]), abs=0.02)
    assert (
        "difference: good.json minus poor.json; p: two-sided, paired; bootstrap for means, approximate randomisation "
        "for corpus scores" in result.output
    )
    assert saved_p(tmp_path / "o.json")["BLEU-4"] == pytest.approx(1 / 201)
    saved = json.loads((tmp_path / "o.json").read_text())
    assert len(saved["per_example"]["poor.json"]) == 40
    again = cells(score(good, "--references", references, "--against", good, *FAST).output)
    assert again["CIDEr"][-1] == "1.000" == again["BLEU-4"][-1]


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
        (["--json", "/dev/null"], 1, "error: /dev/null: already exists and would be replaced; choose another name"),
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


def test_empty_or_equal_texts_are_reported(tmp_path):
    references = write(tmp_path / "r.jsonl", [{"id": n, "text": f"what is it {n}"} for n in range(12)], lines=True)
    empty = write(tmp_path / "empty.jsonl", [{"id": n, "text": "?" * (n % 3)} for n in range(12)], lines=True)
    same = write(tmp_path / "same.jsonl", [{"id": n, "text": "why ?" if n else "who ?"} for n in range(12)], lines=True)
    done = score(empty, "--references", references, "--against", same, *FAST)
    assert done.exit_code == 0
    assert "empty.jsonl: 12 of 12 texts contain no word; the texts say little about the input; train" in done.output
    assert "same.jsonl: 11 of 12 texts are the same ('why ?'); the texts say little " in done.output
    well = write(tmp_path / "well.jsonl", [{"id": n, "text": f"is it {n} ?"} for n in range(12)], lines=True)
    assert "says little" not in score(well, "--references", references, *FAST).output
