"""A run on a table of questions and their answers."""

import json

import pytest
from kit.toys import PLACE, mmgen_here

ANSWERING = """\
name = "toy"
[backbone]
type = "bert"
num_hidden_layers = 1
hidden_size = 32
num_attention_heads = 2
[inputs.question]
type = "text"
append_mask = true
[objectives.answer]
type = "answer_classes"
[steps.answer]
inputs = ["question"]
train = ["backbone"]
objectives = ["answer"]
[data]
type = "table"
folder = "."
columns = { image = "file", question = "ask", answers = "answer" }
[metrics.accuracy]
type = "vqa_accuracy"
"""


@pytest.mark.slow
@pytest.mark.usefixtures("no_page")
def test_vqa_of_a_table_in_a_recipe_of_twenty_lines_without_a_generator(tmp_path):
    """A result below that of the most common answer is a note below the table."""
    rows = [f"{n}.jpg,what is number {n} ?,{('red', 'blue', 'green')[n % 3]}" for n in range(12)]
    tested = [*rows[:2], *(f"{n}.jpg,how {n} ?,grey" for n in range(4))]
    for split, some in (("train", rows), ("val", rows), ("test", tested)):
        (tmp_path / f"{split}.csv").write_text("\n".join(["file,ask,answer", *some]))
    (tmp_path / "toy.toml").write_text(ANSWERING)
    assert mmgen_here(tmp_path, "check", "toy.toml").returncode == 0
    done = mmgen_here(tmp_path, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    assert "| chance |    66.67 |" in done.stdout and "| people |" not in done.stdout
    accuracy = json.loads((tmp_path / PLACE / "steps/answer/scores.json").read_text())["values"]["accuracy"]
    assert accuracy < 66  # grey is not among the answers to train on
    answered = mmgen_here(tmp_path, "predict", PLACE, "--input", "question=what is number 1 ?")
    assert answered.returncode == 0, answered.stderr
