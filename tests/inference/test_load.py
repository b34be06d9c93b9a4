"""Loading a run as the predictor of one step: which step, and what is refused."""

import re
import shutil
from pathlib import Path

import pytest
from kit import small_runs
from kit.refusals import refusal
from PIL import Image

import mmgen
from mmgen.errors import DataError, RunError
from mmgen.inference.best_step import choose_step
from mmgen.inference.load import load
from mmgen.inference.query import Query

QUESTION = Query("q", {"question": "what is it ?", "picture": "ball.png"})


@pytest.fixture(scope="module")
def predicts():
    return small_runs.drawn("predicts")


def test_the_step_that_reads_exactly_the_inputs_is_chosen(predicts):
    assert choose_step(predicts, [QUESTION], writes=False).name == "answers"
    expression = Query("e", {"expression": "red ball", "image": "ball.png"})
    assert choose_step(predicts, [expression], writes=False).name == "expressions"


def test_the_best_step_for_the_inputs_of_a_call_answers_if_none_was_named(caplog):
    """Which step is best is known when the inputs are."""
    place, blank = small_runs.drawn("writes"), Image.new("RGB", (64, 64))
    model, words, both = load(place, dtype="float16"), load(place, step="words"), load(place, step="both")
    assert model.step == "both" and "step 'words' answers" not in caplog.text
    assert (
        model.ask({"picture": blank, "caption": "a red ball"}).value
        == both.ask({"picture": blank, "caption": "a red ball"}).value
    )
    assert model.ask({"caption": "a red ball"}).value == words.ask({"caption": "a red ball"}).value
    assert [answer.value for answer in model.predict_all([{"caption": "a ball"}] * 2)] == [
        words.ask({"caption": "a ball"}).value
    ] * 2
    assert caplog.text.count(f"{place}: step 'words', reads caption, gives text> answers") == 1
    for predictor in (model, both):
        with pytest.raises(DataError) as error:
            predictor.ask(blank)
        assert str(error.value) == (
            "query 1: 'caption' is missing: step 'both' reads image and caption; add --input caption=VALUE, "
            "the field 'caption' of a JSONL file, or in Python the key 'caption'"
        )
    with pytest.raises(DataError, match="step 'both' reads image and caption; add --input image=VALUE"):
        both.ask({"caption": "a red ball"})


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            Query("q", {"question": "what ?"}),
            "'image' is missing: step 'choices' reads question and choice and image; add --input image=VALUE",
        ),
        (Query("q", {"qestion": "what ?"}), "q: unknown input 'qestion'; did you mean 'question'?; available: "),
    ],
)
def test_a_query_that_no_step_can_answer(predicts, query, message):
    with pytest.raises((RunError, DataError)) as error:
        choose_step(predicts, [query], writes=False)
    assert message in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "change", "expected"),
    [
        (
            "backbone/config.json",
            lambda text: text.replace('"bert"', '"roberta"'),
            "is a roberta checkpoint; use weights of the backbone's family",
        ),
        (
            "backbone/tokenizer_config.json",
            lambda text: re.sub(r'"mask_token": "\[MASK\]",', "", text),
            "tokenizer_config.json: damaged (the tokenizer has no mask token)",
        ),
        (
            "inputs.json",
            lambda text: text.replace('"width": 288', '"width": -1'),
            "inputs.json: damaged: image.width: ",
        ),
    ],
)
def test_damaged_files_of_a_run_are_reported_by_name(tmp_path, file, change, expected):
    root = Path(shutil.copytree(small_runs.drawn("writes"), tmp_path / "run"))
    path = root / file
    text = path.read_text()
    path.write_text(change(text))
    assert path.read_text() != text
    message = refusal(mmgen.load, root)
    assert expected in message and path.parent.name in message
