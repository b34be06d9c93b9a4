"""The output of `mmgen score`: the table, the notes and the JSON file."""

import json
from types import SimpleNamespace

from mmgen.cli import score_table
from mmgen.examples import Scores
from mmgen.scoring import Comparison, System

REQUEST = SimpleNamespace(per="image", resamples=1000, corpus_intervals=False, randomisations=0)


def comparison(**changes):
    values = {
        "values": {"a": {"bleu": 10.0, "cider": 50.0}},
        "intervals": {"a": {"cider": (40.0, 60.0)}},
        "per_example": {"a": {"cider": [40.0, 60.0]}},
    }
    fields = {name: {} for name in Comparison.__dataclass_fields__} | {"notes": ()}
    return Comparison(**{**fields, **values, **changes})


def test_a_row_for_every_metric():
    lines = score_table.format_table(comparison(), [System("a", [["x"], ["y"]])]).splitlines()
    assert [cell.strip() for cell in lines[0].strip("|").split("|")] == ["metric", "value", "95 %"]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert cells[0] == ["bleu", "10.00", "-"] and cells[1][0] == "cider" and " to " in cells[1][2]


def test_notes_say_what_has_no_interval():
    lines = [*score_table.notes(comparison(), [System("a", [["x"]])], 2, 3, REQUEST)]
    assert lines[1] == "2 of 3 examples, references per image"
    assert lines[2] == "95 %: bootstrap over examples, 1000 times"
    assert lines[3] == "no interval for bleu: not a mean over examples; use --corpus-intervals (slower)"


def test_the_file_has_the_scores_of_every_example(tmp_path):
    score_table.write(tmp_path / "s.json", comparison(), ["1", "2"])
    saved = json.loads((tmp_path / "s.json").read_text())
    assert saved["per_example"] == {"a": [{"id": "1", "cider": 40.0}, {"id": "2", "cider": 60.0}]}
    rescored = SimpleNamespace(rows={"first": Scores({"cider": 50.0}, {"cider": [50.0]})}, ids={"first": ("7",)})
    score_table.write_rows(tmp_path / "r.json", rescored)
    assert json.loads((tmp_path / "r.json").read_text()) == {
        "first": {"values": {"cider": 50.0}, "notes": [], "per_example": [{"id": "7", "cider": 50.0}]}
    }
