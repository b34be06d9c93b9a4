"""Notes about a step that writes empty or equal texts."""

import json
from dataclasses import asdict

import pytest
from kit import toys

from mmgen import report
from mmgen.data.datasets import Datasets
from mmgen.evaluation.score import write_scores
from mmgen.examples import Generation, Scores
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.storage.run_folder import RunFolder


@pytest.fixture
def recipe(tmp_path):
    (tmp_path / "toy.toml").write_text(toys.recipe(inputs={"caption": {"type": "text", "max_tokens": 6}}))
    return load(tmp_path / "toy.toml", installed())[0]


@pytest.mark.parametrize(
    "texts, remark",
    [
        (["", "?", "a dog", "??"], "3 of 4 texts contain no word; "),
        (["why ?"] * 6 + list("abcdef"), "6 of 12 texts are the same ('why ?'); "),
        (["no"] * 6 + list("abcdef"), "6 of 12 texts are the same ('no'); "),
        (["why ?"] * 4, ""),  # so few say nothing
        (["?"], ""),  # as its own remark says
        (list("abcdefghijkl"), ""),
    ],
)
def test_a_step_that_writes_nothing_or_one_text_has_a_note_below_the_table(tmp_path, recipe, texts, remark):
    folder = RunFolder(tmp_path)
    lines = [json.dumps([asdict(Generation(str(n), text, (), 0.0))]) + "\n" for n, text in enumerate(texts)]
    folder.step("second").mkdir(parents=True)
    (folder.step("second") / "generations.jsonl").write_text("".join(lines))
    write_scores(folder.step("second"), Scores({"relevance": 100.0}, notes=("a note",)))
    notes = report.gather_tables(recipe, folder, Datasets(recipe))[0].notes
    assert "a note" in notes and any("second: " in note for note in notes) == bool(remark)
    assert not remark or any(note.startswith(f"second: {remark}the texts say little about the input") for note in notes)
