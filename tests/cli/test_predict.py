"""The command `mmgen predict`: how the terminal shows predictions."""

from mmgen.cli.predict import _print


def test_a_choice_is_shown_with_its_probabilities(capsys):
    value = {"choice": 2, "probabilities": [0.1, 0.2, 0.6, 0.1]}
    _print({"id": "e", "value": value, "score": 0.6}, "choice")
    assert capsys.readouterr().out.splitlines()[1:3] == ["     60.0%  2", "     20.0%  1"]
