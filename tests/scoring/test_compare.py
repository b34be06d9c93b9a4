"""Scores of one or two systems: columns and differences."""

import gzip
import json
import math
import random

import numpy as np
import pytest
from kit.scoring import FAST, Words, cells, examples, score, write

from mmgen import RecipeError
from mmgen.registry import installed
from mmgen.scoring import compare, metrics


def registry():
    return installed()


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


@pytest.mark.slow
def test_files_of_real_captions_score_as_in_pycocoevalcap(real_data, tmp_path):
    """Golden: every COCO image's first caption scored against its other captions, through files, command and JSON."""
    from collections import defaultdict

    from mmgen_metrics.ptb import tokenise
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
    values = {name: cell["value"] for name, cell in saved["rows"]["results.json"].items()}
    assert values == pytest.approx({name: 100 * value for name, value in expected.items()}, abs=1e-9)
    columns = {"id": saved["ids"], **saved["per_example"]["results.json"]}
    assert columns["id"] == [str(image) for image in images]
    assert np.mean(columns["CIDEr"]) == pytest.approx(100 * cider)


def many(count: int, right: float, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [f"t{n}" if draw.random() < right else "wrong" for n in range(count)]


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
