"""Result files of official evaluations: read, scored, and written so that they are read again."""

import json

import pytest
from kit.published import VCR_RESULTS
from kit.refusals import refusal
from mmgen_data import Vqa
from mmgen_tasks import ChoiceAccuracy, PairAccuracy, Vcr, VqaAccuracy

from mmgen.errors import DataError
from mmgen.examples import Example, Prediction

# --- published results and references ---------------------------------------------------------------------------------


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


def assert_read_again(metric, values, path) -> None:
    """Written predictions are read again from a file at `path`."""
    examples = [
        Example(example_id, {}, facts={"item": example_id.split("-answer")[0].split("-rationale")[0]})
        for example_id in values
    ]
    path.write_text(metric.result_files().write(values, examples), encoding="utf-8")
    assert metric.result_files().read(path, examples) == values


# --- tests ------------------------------------------------------------------------------------------------------------


TRAIN = {"train_split": "val", "validation_split": "", "test_split": "val"}


def values(config, path, examples):
    """The scores of a result file."""
    read = config.result_files().read(path, examples)
    predictions = [Prediction(example.id, read[example.id], 0.0) for example in examples]
    return config().build().score(predictions, examples).values


def test_vqa_results_are_scored(files, tmp_path):
    questions = [{"question_id": int(question_id), "image_id": 9, "question": "what?"} for question_id in PEOPLE]
    answers = [(1, "Yes"), (2, "Red."), (3, "2")]
    results = [{"question_id": question_id, "answer": answer} for question_id, answer in answers]
    path, *_ = files(ours_json=results, q_json={"questions": questions}, val_json=ANNOTATIONS)
    config = Vqa(folder=tmp_path, targets="answers", files={"val": "q.json"}, annotations={"val": "val.json"}, **TRAIN)
    scores = values(VqaAccuracy, path, config.build().split("val"))
    # answers are not normalised where all people agree
    assert scores == {"accuracy": pytest.approx(200 / 3), "yes/no": 0, "number": 100, "other": pytest.approx(100)}


def test_vcr_probabilities_are_scored(files, tmp_path):
    path, _ = files(ours_csv=VCR_RESULTS, val_jsonl="".join(json.dumps(item) + "\n" for item in ITEMS))
    examples = Vcr(folder=tmp_path, subtask="both", **TRAIN).build().split("val")
    # rationales given the right answer: 3, 2 and 1 are the likeliest, and right
    two_thirds = pytest.approx(200 / 3)
    assert values(ChoiceAccuracy, path, examples) == {"Q->A": two_thirds, "QA->R": 100, "Q->AR": two_thirds}


def test_rationales_need_examples_with_the_right_answer(files):
    form, rationale = ChoiceAccuracy.result_files(), Example("val-0-rationale", {}, labels={"choice": 3})
    with pytest.raises(DataError, match=r"'val-0-rationale' needs the right answer, which these examples do not have"):
        form.read(*files(r_csv=VCR_RESULTS), [rationale])
    every = [Example(f"val-0-rationale-{k}", {}) for k in range(4)]
    read = form.read(*files(r_csv=VCR_RESULTS), every)
    assert [read[example.id]["choice"] for example in every] == [3, 0, 0, 0]


@pytest.mark.parametrize(
    ("metric", "name", "text", "words"),
    [
        (VqaAccuracy, "r_json", '[{"question_id": 1, "answer": "a"}, {"question_id": 1, "answer": "b"}]',
         "r.json: results[1]: duplicate question_id '1'"),
        (PairAccuracy, "r_csv", "a-1-1-0,perhaps\n", "r.csv:1: a line must be IDENTIFIER,True or IDENTIFIER,False"),
        (ChoiceAccuracy, "r_csv", VCR_RESULTS + "val-9,1\n", "r.csv:5: values: 2, columns: 21"),
    ],
)  # fmt: skip
def test_results_that_cannot_be_used(files, metric, name, text, words):
    (path,) = files(**{name: text})
    assert words in refusal(metric.result_files().read, path, [])


@pytest.mark.parametrize(
    ("metric", "values"),
    [
        (VqaAccuracy, {"262148000": "red", "9": "two dogs, é"}),
        (PairAccuracy, {"test1-0-1-0": {"label": "True"}, "test1-0-2-0": {"label": "False"}}),
        (ChoiceAccuracy, {f"v-{name}": {"choice": 2, "probabilities": [n / 10, 0.0, 1 - n / 10, 0.0]} for n, name in
                          enumerate(("answer", "rationale-0", "rationale-1", "rationale-2", "rationale-3"))}),
    ],
)  # fmt: skip
def test_written_results_are_read_again(tmp_path, metric, values):
    assert_read_again(metric, values, tmp_path / "w.csv")


def test_numbers_stay_numbers_and_missing_predictions_are_not_written():
    text = VqaAccuracy.result_files().write(
        {"26": "red", "007": {"label": "no"}}, [Example("26", {}), Example("007", {})]
    )
    assert json.loads(text) == [{"question_id": 26, "answer": "red"}, {"question_id": "007", "answer": "no"}]
    with pytest.raises(DataError, match="no prediction for 'a-answer'"):
        ChoiceAccuracy.result_files().write({}, [Example("a-answer", {}, facts={"item": "a"})])
