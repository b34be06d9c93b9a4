"""The options of `mmgen score`, as one object."""

from dataclasses import fields

from mmgen.cli.score import score
from mmgen.cli.score_request import ScoreRequest


def test_it_has_every_option_of_the_command():
    assert {field.name for field in fields(ScoreRequest)} == {option.name for option in score.params}
