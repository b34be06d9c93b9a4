"""Result files of the tasks: read, scored and written in the formats of the official evaluations."""

import json
import random
import re

import pytest
from click.testing import CliRunner
from mmgen_tasks import BoxAccuracy, ChoiceAccuracy, Nlvr2, PairAccuracy, PhraseRecall, Vcr, VqaAccuracy, VqaAnswers

from mmgen.cli import main
from mmgen.errors import DataError
from mmgen.tensors import Example

PEOPLE = {
    "1": ("yes/no", ("yes",) * 10),
    "2": ("other", ("red",) * 6 + ("dark red",) * 4),
    "3": ("number", ("2",) * 10),
}
ANNOTATIONS = {
    "annotations": [
        {
            "question_id": int(question_id),
            "image_id": 9,
            "question_type": "what",
            "answer_type": kind,
            "answers": [{"answer": answer, "answer_id": place} for place, answer in enumerate(answers)],
        }
        for question_id, (kind, answers) in PEOPLE.items()
    ]
}
PAIRS = "".join(
    json.dumps({"identifier": f"dev-{set_}-{pair}-0", "sentence": "two dogs", "label": str(pair == 0)}) + "\n"
    for set_ in range(3)
    for pair in range(2)
)
ITEMS = [
    {
        "annot_id": f"val-{n}",
        "img_fn": "film/still.jpg",
        "objects": ["person"],
        "question": ["why", "?"],
        "answer_choices": [["it", "is"]] * 4,
        "rationale_choices": [["so"]] * 4,
        "answer_label": n,
        "rationale_label": 3 - n,
    }
    for n in range(3)
]
BOXES = [{"id": n, "box": [0, 0, 50, 40 + n], "type": "people"} for n in range(3)]


def vcr(best_choices):
    """VCR's file: per item five groups, each with one likeliest choice."""
    groups = ["answer", *(f"rationale_conditioned_on_a{k}" for k in range(4))]
    lines = [",".join(["annot_id", *(f"{group}_{choice}" for group in groups for choice in range(4))])]
    for item, best_by_group in best_choices.items():
        lines.append(
            ",".join([item, *("0.7" if choice == best else "0.1" for best in best_by_group for choice in range(4))])
        )
    return "\n".join(lines) + "\n"


VCR = vcr({"val-0": (0, 3, 0, 0, 0), "val-1": (1, 0, 2, 0, 0), "val-2": (0, 0, 0, 1, 0)})


def score(*arguments):
    return CliRunner().invoke(main, ["score", *map(str, arguments)])


def cells(output):
    """First cell of every row of the table -> the remaining cells."""
    rows = [re.split(r" *\| *", line.strip("| ")) for line in output.splitlines() if line.startswith("| ")]
    return {row[0]: row[1:] for row in rows}


@pytest.fixture
def files(tmp_path):
    def write(**texts):
        """Write files of these names (a_json is a.json) and return their paths."""
        paths = []
        for name, text in texts.items():
            paths.append(tmp_path / ".".join(name.rsplit("_", 1)))
            paths[-1].write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        return paths

    return write


def test_vqa_results_are_scored_with_intervals(files):
    answers = [(1, "Yes"), (2, "Red."), (3, "2")]
    results = [{"question_id": question_id, "answer": answer} for question_id, answer in answers]
    result = score(*files(ours_json=results), "--references", *files(val_json=ANNOTATIONS), "--metric", "vqa_accuracy")
    assert result.exit_code == 0, result.output
    table = cells(result.output)
    assert {name: row[0] for name, row in table.items()} == {
        "metric": "value",
        "accuracy": "66.67",  # answers are not normalised where all people agree
        "yes/no": "0.00",
        "number": "100.00",
        "other": "100.00",
    }
    assert "3 examples\n" in result.output and "references per" not in result.output
    assert "no intervals: all examples have the same image" in result.output


def test_predictions_of_mmgen_are_scored(files):
    lines = [
        {"id": question_id, "value": {"label": answers[0], "probabilities": {}}}
        for question_id, (_, answers) in PEOPLE.items()
    ]
    ours = files(ours_jsonl="".join(json.dumps(line) + "\n" for line in lines))
    result = score(*ours, "--references", *files(val_json=ANNOTATIONS), "--metric", "vqa_accuracy")
    assert cells(result.output)["accuracy"][0] == "100.00"


def test_pairs_are_scored_and_compared(files):
    right, wrong = "identifier,prediction\n", ""
    for line in map(json.loads, PAIRS.splitlines()):
        right += f"{line['identifier']},{line['label'].lower()}\n"
        wrong += f"{line['identifier']},True\n"
    ours, theirs, truth = files(ours_csv=right, theirs_csv=wrong, dev_json=PAIRS)
    result = score(ours, "--against", theirs, "--references", truth, "--metric", "pair_accuracy")
    assert result.exit_code == 0, result.output
    table = cells(result.output)
    assert table["accuracy"][:4] == ["100.00", "100.00 to 100.00", "50.00", "50.00 to 50.00"]
    assert table["consistency"][0] == "100.00" and table["consistency"][2] == "0.00"


def test_vcr_probabilities_are_scored(files):
    truth = "".join(json.dumps(item) + "\n" for item in ITEMS)
    result = score(*files(ours_csv=VCR), "--references", *files(val_jsonl=truth), "--metric", "choice_accuracy")
    assert result.exit_code == 0, result.output
    # rationales given the right answer: 3, 2 and 1 are the likeliest, and right
    assert {name: row[0] for name, row in cells(result.output).items() if name != "metric"} == {
        "Q->A": "66.67",
        "QA->R": "100.00",
        "Q->AR": "66.67",
    }
    assert re.search(r"Q->AR +\| +66.67 \| +0.00 to 100.00", result.output)


def test_boxes_and_phrases_are_scored_in_pixels_or_shares(files):
    ours = [{"id": n, "box": [0, 0, 50, 20 + n]} for n in range(3)]
    result = score(*files(ours_json=ours), "--references", *files(right_json=BOXES), "--metric", "box_accuracy")
    assert cells(result.output)["accuracy"][0] == "100.00", result.output
    ours = [{"id": n, "boxes": [[90, 90, 91, 91]] * n + [[0, 0, 50, 40]]} for n in range(3)]
    result = score(
        *files(ours_json=ours),
        *("--references", *files(right_json=BOXES)),
        *("--metric", "phrase_recall", "--set", "phrase_recall.by_phrase_type=true"),
    )
    assert {name: row[0] for name, row in cells(result.output).items() if name != "metric"} == {
        "people": "33.33",
        "R@1": "33.33",
        "R@5": "100.00",
        "R@10": "100.00",
        "upper bound": "100.00",
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--metric", "vqa_accuracy", "--metric", "pair_accuracy"),
            "--metric: the metrics are for several tasks (vqa, nlvr2); use the metrics of one task at a time",
        ),
        (
            ("--metric", "diversity", "--metric", "box_accuracy"),
            "--metric: diversity judges text, and box_accuracy region; use one metric at a time",
        ),
        (
            ("--metric", "vqa_accuracy", "--references-per", "question"),
            "--references-per question: only for texts; leave it out for predictions of a task",
        ),
        (("--metric", "vqa_accuracy"), "references have no prediction (2, 3); --partial scores the 1 that have both"),
    ],
)
def test_arguments_that_do_not_fit_give_one_line(files, arguments, words):
    ours, truth = files(ours_json=[{"question_id": 1, "answer": "yes"}], val_json=ANNOTATIONS)
    result = score(ours, "--references", truth, *arguments)
    assert result.exit_code == 1 and words in result.output and len(result.output.splitlines()) == 1


def test_references_of_files_equal_those_of_data_sets(files, tmp_path):
    questions = [{"question_id": int(question_id), "image_id": 9, "question": "what?"} for question_id in PEOPLE]
    lines = "".join(json.dumps(item) + "\n" for item in ITEMS)
    truth = files(val_json=ANNOTATIONS, dev_json=PAIRS, val_jsonl=lines)
    files(q_json={"questions": questions})
    named = {"questions": {"val": ["q.json"]}, "annotations": {"val": ["val.json"]}}
    splits = {"folder": tmp_path, "train_split": "val", "test_split": "val"}
    published = [
        VqaAnswers(**splits, **named),
        Nlvr2(**{**splits, "train_split": "dev", "test_split": "dev"}),
        Vcr(**splits, subtask="both"),
    ]
    for metric, path, config in zip((VqaAccuracy, PairAccuracy, ChoiceAccuracy), truth, published, strict=True):
        known = config.build().split(config.test_split)
        for reference, example in zip(metric.result_files().read_references(path), known, strict=True):
            assert (reference.id, reference.targets, reference.facts) == (example.id, example.targets, example.facts)
            assert reference.labels.items() <= example.labels.items()


@pytest.mark.parametrize(
    ("config", "name", "text", "words"),
    [
        (VqaAccuracy, "r_json", '{"answers": []}', "r.json: not a file of VQA results: it has no list 'results'"),
        (
            VqaAccuracy,
            "r_json",
            '[{"question_id": 1}]',
            "r.json: results[0]: has no 'answer'; its keys are: question_id",
        ),
        (
            VqaAccuracy,
            "r_json",
            '[{"question_id": 1, "answer": 2}]',
            "results[0]: answer must be a string, not a number",
        ),
        (
            VqaAccuracy,
            "r_json",
            json.dumps([{"question_id": 1, "answer": "a"}] * 2),
            "r.json: results[1]: duplicate id '1'",
        ),
        (
            PairAccuracy,
            "r_csv",
            "a-1-1-0,True\nb-1-1-0\n",
            "r.csv:2: a line must be IDENTIFIER,True or IDENTIFIER,False",
        ),
        (
            PairAccuracy,
            "r_csv",
            "a-1-1-0,perhaps\n",
            "r.csv:1: the prediction must be True or False, not 'perhaps'",
        ),
        (
            ChoiceAccuracy,
            "r_csv",
            "annot_id,answer_0\n",
            "r.csv:1: no column 'answer_1'; VCR's file has annot_id and 20",
        ),
        (ChoiceAccuracy, "r_csv", VCR.replace("0.7", "high", 1), "r.csv:2: answer_0 must be a number, not 'high'"),
        (ChoiceAccuracy, "r_csv", VCR.replace("0.7", "nan", 1), "r.csv:2: answer_0 must be a number, not 'nan'"),
        (ChoiceAccuracy, "r_csv", VCR + "val-9,1\n", "r.csv:5: 2 cells, but the header has 21 columns"),
        (ChoiceAccuracy, "r_csv", VCR + VCR.splitlines()[1], "r.csv:5: duplicate id 'val-0'"),
        (BoxAccuracy, "r_json", '[{"id": 1, "box": [0, 0, 1]}]', "r.json: results[0]: a box must be four numbers"),
        (BoxAccuracy, "r_json", '[{"id": 1, "box": [0, 0, 1, NaN]}]', "r.json: results[0]: a box must be four numbers"),
        (
            PhraseRecall,
            "r_json",
            '[{"id": 1, "boxes": 3}]',
            "results[0]: boxes must be a list of boxes, not a number",
        ),
    ],
)
def test_results_that_cannot_be_used_give_one_line(files, config, name, text, words):
    with pytest.raises(DataError) as caught:
        config.result_files().read(*files(**{name: text}), [])
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("config", "text", "words"),
    [
        (VqaAccuracy, '{"annotations": [{"question_id": 1, "answers": 3}]}', "annotations[0]: answers must be a list"),
        (
            VqaAccuracy,
            '{"annotations": [{"question_id": 1, "answers": [{}]}]}',
            "annotations[0]: answers[0]: has no 'answer'",
        ),
        (PairAccuracy, PAIRS.splitlines()[0] + "\n" + PAIRS, "r.json:2: duplicate id 'dev-0-0-0'"),
        (PairAccuracy, PAIRS.replace("True", "yes", 1), 'r.json:1: label must be "True" or "False", not \'yes\''),
        (ChoiceAccuracy, json.dumps({**ITEMS[0], "answer_label": 4}), "r.json:1: answer_label must be a number from 0"),
        (ChoiceAccuracy, '{"annot_id": "v"}', "r.json:1: has no 'img_fn'; its keys are: annot_id"),
        (BoxAccuracy, '[{"id": 1}]', "r.json: references[0]: has no 'box'; its keys are: id"),
    ],
)
def test_references_that_cannot_be_used_give_one_line(files, config, text, words):
    with pytest.raises(DataError) as caught:
        config.result_files().read_references(*files(r_json=text))
    assert words in str(caught.value)


def test_rationales_need_examples_with_the_right_answer(files):
    form, rationale = ChoiceAccuracy.result_files(), Example("val-0-rationale", {}, labels={"choice": 3})
    with pytest.raises(DataError, match=r"'val-0-rationale' needs the right answer, which these examples do not have"):
        form.read(*files(r_csv=VCR), [rationale])
    every = [Example(f"val-0-rationale-{k}", {}) for k in range(4)]
    values = form.read(*files(r_csv=VCR), every)
    assert [values[example.id]["choice"] for example in every] == [3, 0, 0, 0]
    assert values["val-1"]["choice"] == 1  # no example is about it: pairing results with examples reports that


def test_written_results_are_read_again(files):
    draw = random.Random(0)
    shares = [[draw.random() for _ in range(4)] for _ in range(10)]
    ids = [
        f"{item}-{subtask}"
        for item in ("test-0", "test-1")
        for subtask in ("answer", *(f"rationale-{k}" for k in range(4)))
    ]
    cases = {
        VqaAccuracy: {"262148000": "red", "9": "two dogs, é"},
        PairAccuracy: {"test1-0-1-0": {"label": "True"}, "test1-0-2-0": {"label": "False"}},
        ChoiceAccuracy: {
            example_id: {"choice": row.index(max(row)), "probabilities": row}
            for example_id, row in zip(ids, shares, strict=True)
        },
        BoxAccuracy: {"a": {"box": [0.1, 0.2, 0.3, 0.4]}},
        PhraseRecall: {"a": [[0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 1.0, 1.0]], "b": []},
    }
    for config, values in cases.items():
        form = config.result_files()
        examples = [
            Example(example_id, {}, facts={"item": example_id.split("-answer")[0].split("-rationale")[0]})
            for example_id in values
        ]
        assert form.read(*files(w_txt=form.write(values, examples)), examples) == values
    text = VqaAccuracy.result_files().write(cases[VqaAccuracy] | {"9": {"label": "no"}}, [Example("262148000", {})])
    assert json.loads(text) == [{"question_id": 262148000, "answer": "red"}]
    header, first, _ = (
        ChoiceAccuracy.result_files()
        .write(
            cases[ChoiceAccuracy],
            examples=[Example(example_id, {}, facts={"item": example_id[:6]}) for example_id in ids],
        )
        .splitlines()
    )
    assert header.startswith("annot_id,answer_0,answer_1,answer_2,answer_3,rationale_conditioned_on_a0_0,")
    assert len(first.split(",")) == 21 and first.startswith("test-0,")


def test_missing_predictions_are_not_written():
    answers = [Example("test-0-answer", {}, facts={"item": "test-0"})]
    values = {"test-0-answer": {"choice": 0, "probabilities": [1.0, 0.0, 0.0, 0.0]}}
    with pytest.raises(
        DataError, match=r"no prediction for 'test-0-rationale-0': VCR's file has the rationales of all"
    ):
        ChoiceAccuracy.result_files().write(values, answers)
    with pytest.raises(DataError, match="no prediction for '7'"):
        VqaAccuracy.result_files().write({}, [Example("7", {})])
    with pytest.raises(DataError, match=r"the prediction must be a label or a string, not \{'box'"):
        PairAccuracy.result_files().write({"7": {"box": [0, 0, 1, 1]}}, [Example("7", {})])
