"""Messages about values are mmgen's, not pydantic's."""

import pytest
from kit.recipes import mistakes


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("training.epochs=0", "must be at least 1, not 0"),
        ("training.learning_rate=0", "must be more than 0, not 0"),
        ("training.warmup_ratio=1.5", "must be at most 1, not 1.5"),
        ("backbone.dropout=1", "must be less than 1, not 1"),
        ("training.epochs=2.5", "must be a whole number, not 2.5"),
        ("training.epochs='2'", 'must be a whole number, not "2"'),
        ("training.learning_rate=nan", "must be a finite number, not NaN"),
        ("training.learning_rate=x", 'must be a number, not "x"'),
        ("training.gradient_checkpointing=1", "must be true or false, not 1"),
        ("training.keep=lst", "must be 'last' or 'best', not \"lst\"; did you mean 'last'?"),
        ("name=5", "must be a string in quotation marks, not 5"),
        (
            "name='../x'",
            "a name must start with a letter, a digit or '_', and contain only letters, digits, '_', '-' and '.', not",
        ),
        ("name=''", "must not be empty"),
        ("steps.first.train=[]", "must not be empty"),
        ("steps.first.inputs=caption", 'must be a list, [...], not "caption"'),
        ("inputs.caption.fields=5", "must be a list, [...], not 5"),
        ("data.seed=1979-05-27", 'must be a whole number, not "1979-05-27"'),
        ("decoding.num_beams=0", "must be at least 1, not 0"),
        (
            "decoding.num_return_sequences=3",
            "3 texts need num_beams of at least that number, not 1, or do_sample = true",
        ),
    ],
)
def test_every_message_is_ours(recipe, setting, expected):
    key = setting.partition("=")[0]
    (message,) = mistakes(recipe(), sets=(setting,))
    assert message.startswith(f"--set {setting}: {key}: {expected}")
