"""Loading a run as the predictor of one step: which step, and what is refused."""

from pathlib import Path

import pytest

from mmgen.errors import DataError, RecipeError, RunError
from mmgen.inference.load import check_query, choose_step, load, load_run
from mmgen.inference.query import Query

KEPT = Path(__file__).parents[1] / "kept_runs" / "predicts" / "seed-0"
QUESTION = Query("q", {"question": "what is it ?"}, "ball.png")


def test_the_step_that_reads_exactly_the_inputs_is_chosen():
    assert choose_step(KEPT, [QUESTION], writes=False) == "answers"
    expression = Query("e", {"expression": "red ball", "image": "ball.png"})
    assert choose_step(KEPT, [expression], writes=False) == "expressions"


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
def test_a_query_that_no_step_can_answer(query, message):
    with pytest.raises((RunError, DataError)) as error:
        choose_step(KEPT, [query], writes=False)
    assert message in str(error.value)


def test_a_form_of_queries_is_checked_once(monkeypatch):
    check = check_query(KEPT, "answers")
    with pytest.raises(DataError, match="'image' is missing: step 'answers' reads question and image"):
        check(Query("q", {"question": "what ?"}))
    check(QUESTION)
    monkeypatch.setattr("mmgen.inference.load.StepNames", None)
    check(Query("other", {"question": "who ?"}, "sky.png"))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"step": "answer"},
            RunError,
            f"{KEPT}: step 'answer' has no weights; trained steps: expressions, answers, choi",
        ),
        ({"threads": 0}, DataError, "threads must be a positive integer, not 0"),
        (
            {"sets": ["training.epochs=3"]},
            RecipeError,
            "--set training.epochs=3: the settings of a trained run are fixed; only decoding.* and an input's "
            "extractor, features, allow_other_features (inputs.NAME.*) can be overridden",
        ),
    ],
)
def test_what_a_run_cannot_be_loaded_with(options, error, message):
    with pytest.raises(error) as raised:
        load_run(KEPT, **options)
    assert str(raised.value).startswith(message)


def test_numbers_that_are_no_dtype():
    with pytest.raises(DataError, match='dtype \'int8\': must be "float32", "bfloat16" or "float16"'):
        load(KEPT, dtype="int8")
