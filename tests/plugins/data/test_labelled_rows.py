"""Tables and JSON lines with labels: answers of several people, truths, choices, boxes, and facts."""

import csv
import io
import json

import pytest
from kit import published, toys
from kit.toys import PLACE, mmgen_here
from mmgen_data import Table

from mmgen.errors import DataError
from mmgen.testing import DatasetSuite

COLUMNS = {"image": "file", "question": "ask", "answers": "answer"}
ROWS = [("a.jpg", "what is it ?", "A dog."), ("a.jpg", "how many ?", "two"), ("b.jpg", "what is it ?", "Cat")]
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


def write_csv(folder, rows, header=("file", "ask", "answer"), name="train.csv"):
    text = io.StringIO()
    csv.writer(text).writerows([header, *rows])
    (folder / name).write_text(text.getvalue())
    return folder


def table(folder, rows, header=("file", "ask", "answer"), **settings) -> Table:
    """A config of one file, which is the split to train on and to evaluate."""
    write_csv(folder, rows, header)
    keys = {"columns": COLUMNS, "validation_split": "", "test_split": "train", **settings}
    return Table(folder=folder, **keys)


def lines(folder, rows, **settings) -> Table:
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Table(folder=folder, validation_split="", test_split="train", **settings)


def load_error(config) -> str:
    with pytest.raises(DataError) as error:
        config.build().split("train")
    return str(error.value)


class TestLabelledRows(DatasetSuite):
    @pytest.fixture(autouse=True)
    def write_files(self, tmp_path):
        self.folder = tmp_path
        published.pictures(tmp_path / "images", "a.jpg", "b.jpg")
        for number, split in enumerate(("train", "val", "test")):
            write_csv(tmp_path, [(file, f"{ask} {number}", answer) for file, ask, answer in ROWS], name=f"{split}.csv")

    def config(self):
        return Table(folder=self.folder, images="images", columns=COLUMNS)


def test_every_row_is_a_question_with_its_answer(tmp_path):
    dataset = table(tmp_path, ROWS).build()
    dog, two, cat = dataset.split("train")
    assert (dog.id, dog.inputs) == ("train-1", {"image": "a", "question": "what is it ?", "answer": "dog"})
    assert dog.targets == ("dog",) * 10 and dog.labels == {"answers": {"dog": 1.0}}
    assert two.targets == ("2",) * 10 and cat.facts == {"image": "b", "people": "1"}
    assert dataset.vocabularies() == {"answers": ("dog", "2", "cat")}
    training = table(tmp_path, ROWS, train_split="train", test_split="val", files={"val": "train.csv"}).build()
    assert [example.targets for example in training.split("train")] == [("dog",), ("2",), ("cat",)]


def test_rows_with_the_same_inputs_or_id_are_the_answers_of_several_people(tmp_path):
    rows = [("a.jpg", "what is it ?", "dog"), ("b.jpg", "what is it ?", "cat"), ("a.jpg", "what is it ?", "wolf---dog")]
    first, second = table(tmp_path, rows).build().split("train")
    assert first.facts["people"] == "3" and first.targets.count("dog") == 7 and first.targets.count("wolf") == 3
    assert first.labels["answers"] == {"dog": 1.0} and second.id == "train-2"  # no question has wolf first
    numbered = [(f"{number % 2}", *row) for number, row in enumerate(rows)]
    header = ("id", "file", "ask", "answer")
    assert [example.id for example in table(tmp_path, numbered, header).build().split("train")] == [
        "train-0",
        "train-1",
    ]
    message = load_error(table(tmp_path, [(7, *row) for row in rows], header))
    assert message == (
        f"{tmp_path}/train.csv:3: an earlier row with the same id has other inputs or labels; "
        "give every example its own id"
    )


def test_the_vocabulary_is_cut_and_other_answers_have_no_weight(tmp_path):
    dataset = table(tmp_path, [*ROWS, ("c.jpg", "what is it ?", "dog")], num_answers=1).build()
    assert dataset.vocabularies() == {"answers": ("dog",)}
    assert [example.labels["answers"] for example in dataset.split("train")] == [{"dog": 1.0}, {}, {}, {"dog": 1.0}]


def test_labels_of_every_kind_from_a_table(tmp_path):
    header = ("file", "ask", "options", "correct", "yes", "where", "things", "grade")
    row = ("a.jpg", "which ?", "red---blue", "blue", "Yes", "0.1 0.2, 0.5;1", "0 0 1 1---0 0 .5 .5", "2")
    columns = {"image": "file", "question": "ask", "choices": "options", "choice": "correct", "truth": "yes"}
    config = table(tmp_path, [row], header, columns={**columns, "box": "where", "boxes": "things"}, facts=("grade",))
    assert config.labels == ("truth", "choices", "choice", "box")
    dataset = config.build()
    (example,) = dataset.split("train")
    assert example.labels == {"truth": True, "choices": ("red", "blue"), "choice": 1, "box": (0.1, 0.2, 0.5, 1.0)}
    assert example.inputs == {"image": "a", "question": "which ?"} and example.facts == {"image": "a", "grade": "2"}
    assert config.boxes(dataset, "a") == ([(0, 0, 1, 1), (0, 0, 0.5, 0.5)], None)
    assert dataset.vocabularies() == {"truth": ("False", "True")} and example.targets == ()


def test_labels_of_every_kind_from_json_lines(tmp_path):
    rows = [
        {"id": 1, "image": "a.jpg", "q": "which ?", "c": ["red", "blue"], "n": 1, "level": 2},
        {"id": 2, "image": "a.jpg", "q": "which ?", "c": ["red", "blue"], "n": None, "level": 1},
    ]
    columns = {"question": "q", "choices": "c", "choice": "n"}
    dataset = lines(tmp_path, rows, columns=columns, facts=("level",)).build()
    (example,) = dataset.split("train")
    assert (example.id, example.inputs) == ("train-1", {"image": "a", "question": "which ?"})
    assert example.labels == {"choices": ("red", "blue"), "choice": 1} and example.facts["level"] == "2"
    assert dataset.describe()["counts"]["train"]["rows without a label"] == 1
    answers = lines(tmp_path, [{"question": "what ?", "a": ["x", "y"]}], columns={"answers": "a"}).build()
    assert answers.split("train")[0].facts == {"people": "2"}


def test_json_lines_with_other_names_for_questions_to_generate(tmp_path):
    rows = [{"key": 1, "picture": "a.jpg", "asked": ["what ?"]}]
    columns = {"id": "key", "image": "picture", "questions": "asked"}
    (example,) = lines(tmp_path, rows, columns=columns).build().split("train")
    assert (example.id, example.inputs, example.targets) == ("train-1", {"image": "a"}, ("what ?",))


@pytest.mark.parametrize(
    ("columns", "row", "message"),
    [
        (
            {"choices": "c", "choice": "n"},
            {"c": ["red", "blue"], "n": 2},
            "choice is 2; give one of the choices, or its number from 0 on",
        ),
        (
            {"box": "b"},
            {"b": "10 20 30 40"},
            "box must be x0 < x1 and y0 < y1 from 0 to 1, relative to the picture's size, not '10 20 30 40'",
        ),
    ],
)
def test_rows_that_cannot_be_used(tmp_path, columns, row, message):
    assert load_error(lines(tmp_path, [row], columns=columns)) == f"{tmp_path}/train.jsonl:1: {message}"


def test_a_column_that_does_not_exist(tmp_path):
    config = table(tmp_path, ROWS, columns={**COLUMNS, "answers": "answers"})
    assert load_error(config) == (
        f"{tmp_path}/train.csv:1: no column 'answers'; did you mean 'answer'?; the columns are: file, ask, answer; "
        'name it in data.columns, as in columns = { questions = "NAME" }'
    )


@pytest.mark.slow
@pytest.mark.usefixtures("no_page")
def test_vqa_of_a_table_in_a_recipe_of_twenty_lines_without_a_generator(tmp_path):
    """A result below that of the most common answer is a note below the table."""
    colours = ["red", "blue", "green", "grey"]
    rows = [(f"{number}.jpg", f"what is number {number} ?", colours[number % 3]) for number in range(12)]
    for split in ("train", "val"):
        write_csv(tmp_path, rows, name=f"{split}.csv")
    write_csv(tmp_path, [*rows[:2], *[(f"{n}.jpg", f"how {n} ?", "grey") for n in range(4)]], name="test.csv")
    (tmp_path / "toy.toml").write_text(ANSWERING)
    assert mmgen_here(tmp_path, "check", "toy.toml").returncode == 0
    done = mmgen_here(tmp_path, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    assert "| chance |    66.67 |" in done.stdout and "| people |" not in done.stdout
    accuracy = json.loads((tmp_path / PLACE / "steps/answer/scores.json").read_text())["values"]["accuracy"]
    assert accuracy < 66  # grey is not among the answers to train on
    answered = mmgen_here(tmp_path, "predict", PLACE, "--input", "question=what is number 1 ?")
    assert answered.returncode == 0, answered.stderr
    exported = mmgen_here(tmp_path, "export", PLACE, "exported", "--step", "answer")
    assert exported.returncode == 0, exported.stderr
    again = mmgen_here(tmp_path, "predict", "exported", "--input", "question=what is number 1 ?")
    assert again.stdout.splitlines()[1:] == answered.stdout.splitlines()[1:] != []
    assert mmgen_here(tmp_path, "run", "toy.toml").stdout.count("nothing to do") == 1
    refused = mmgen_here(tmp_path, "generate", PLACE, "--input", "question=what ?")
    assert refused.stderr == f"error: {PLACE}: step 'answer' does not write texts, but predicts label; use predict\n"


def test_a_step_that_writes_needs_a_generator(tmp_path):
    (tmp_path / "toy.toml").write_text(toys.recipe(generator=None))
    assert mmgen_here(tmp_path, "check", "toy.toml").stderr == (
        "error: toy.toml: generator: is missing, and step 'first' trains it: add a table [generator], or name "
        "its objectives\n"
    )
