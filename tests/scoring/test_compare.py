"""Scores of one or two systems: columns and differences."""

import gzip
import json
import math
import random
from collections import defaultdict

import pytest
from kit.scoring import FAST, Words, cells, examples, score, write
from mmgen_metrics import CaptionScores
from mmgen_metrics.scoring.systems import compare, metrics

from mmgen.examples import Example, Generation
from mmgen.registry import installed


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


def test_bleu_1_by_hand(tmp_path):
    """5 of 6 words are right (the second "the" is clipped), 6 words against the closest references' 3 and 4."""
    references = write(tmp_path / "r.json", {"1": ["the cat sat", "the cat sat here now"], "2": ["a dog runs far"]})
    predictions = write(tmp_path / "p.json", {"1": "the the cat", "2": "a dog runs"})
    table = cells(score(predictions, "--references", references, *FAST).output)
    assert table["BLEU-1"][0] == f"{100 * 5 / 6 * math.exp(1 - 7 / 6):.2f}"


@pytest.mark.slow
def test_files_of_real_captions_score_as_the_metric_does(real_data, tmp_path):
    """Every COCO image's first caption against its other captions, through files, command and JSON. The metric equals
    pycocoevalcap: tests/plugins/metrics/test_captioneval.py."""
    images = defaultdict(list)
    for row in json.loads(gzip.decompress((real_data / "coco/captions.json.gz").read_bytes()))["annotations"]:
        images[row["image_id"]].append(row["caption"])
    images = dict(list(images.items())[1000:1300])
    rows = [{"image_id": image, "caption": texts[0]} for image, texts in images.items()]
    predictions = write(tmp_path / "results.json", rows)
    rows = [{"image_id": image, "caption": text} for image, texts in images.items() for text in texts[1:]]
    references = write(tmp_path / "captions.json.gz", {"annotations": rows})
    result = score(predictions, "--references", references, *FAST, "--json", tmp_path / "out.json")
    assert result.exit_code == 0, result.output
    saved = json.loads((tmp_path / "out.json").read_text())
    targets = [Example(str(image), {}, tuple(texts[1:])) for image, texts in images.items()]
    texts = [Generation(str(image), texts[0], (), 0.0) for image, texts in images.items()]
    expected = CaptionScores(meteor=False, tokenizer="own").build().score(texts, targets)
    assert {name: cell["value"] for name, cell in saved["rows"]["results.json"].items()} == expected.values
    assert saved["ids"] == [*map(str, images)] and saved["per_example"]["results.json"] == expected.per_example


def many(count: int, right: float, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [f"t{n}" if draw.random() < right else "wrong" for n in range(count)]


@pytest.mark.slow
def test_two_systems_are_compared_in_pairs():
    systems = {"good": many(300, 0.8, 1), "poor": many(300, 0.5, 2)}
    result, _ = compare(systems, examples(300), {"w": Words()})
    steps, difference = result.of("step"), result.of("difference")["difference"]
    right = difference["right"]
    assert right.value == steps["good"]["right"].value - steps["poor"]["right"].value
    assert 0 < right.interval[0] < right.value < right.interval[1] and right.p == 0.001
    assert steps["good"]["right"].interval and steps["good"]["different"].interval is None  # no sum over examples
    assert difference["different"].value and difference["different"].p is None
    same, _ = compare({"good": systems["good"], "again": systems["good"]}, examples(300), {"w": Words()})
    right = same.of("difference")["difference"]["right"]
    assert right.interval == (0.0, 0.0) and right.p == 1.0
