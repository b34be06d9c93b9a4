"""The command `mmgen score`: two systems and intervals. More is in transcripts/scores.txt."""

import json
import random

import pytest
from kit.scoring import FAST, cells, score, write


@pytest.mark.slow
def test_the_command_shows_pairs_and_intervals(tmp_path):
    draw = random.Random(0)
    words = "what color is the red dog near a big tree".split()
    reference_texts = {str(n): [" ".join(draw.choices(words, k=6)) for _ in range(3)] for n in range(40)}
    references = write(tmp_path / "r.json", reference_texts)
    good = write(
        tmp_path / "good.json",
        {n: [texts[0] if int(n) % 2 else "what is near", texts[1]] for n, texts in reference_texts.items()},
    )
    poor = write(tmp_path / "poor.json", dict.fromkeys(reference_texts, "what color is the dog"))
    more = ("--resamples", 200, "--json", tmp_path / "o.json")
    result = score(good, "--references", references, "--against", poor, *FAST, *more)
    assert result.exit_code == 0, result.output
    table = cells(result.output)
    assert table["metric"] == ["good.json", "95 %", "poor.json", "95 %", "difference", "95 %", "p"]
    assert " to " in table["BLEU-4"][1] and float(table["BLEU-4"][-1]) < 0.05
    assert float(table["CIDEr"][0]) - float(table["CIDEr"][2]) == pytest.approx(float(table["CIDEr"][4]), abs=0.02)
    saved = json.loads((tmp_path / "o.json").read_text())
    assert saved["rows"]["difference"]["BLEU-4"]["p"] == pytest.approx(1 / 201)
    assert len(saved["ids"]) == len(saved["per_example"]["poor.json"]["CIDEr"]) == 40
    again = cells(score(good, "--references", references, "--against", good, *FAST).output)
    assert again["CIDEr"][-1] == "1.000" == again["BLEU-4"][-1]
