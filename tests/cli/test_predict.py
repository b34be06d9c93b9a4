"""The command `mmgen predict`: how the terminal shows predictions."""

from mmgen.cli.predict import _print


def test_a_choice_is_shown_with_its_probabilities(capsys):
    value = {"choice": 2, "probabilities": [0.1, 0.2, 0.6, 0.1]}
    _print({"id": "e", "value": value, "score": 0.6}, "choice")
    assert capsys.readouterr().out.splitlines()[1:3] == ["     60.0%  2", "     20.0%  1"]


def test_a_choice_is_shown_by_its_text(capsys):
    value = {"choice": 1, "probabilities": [0.25, 0.75]}
    _print({"id": "e", "value": value, "score": 0.75, "choices": ["it runs", "it flies"]}, "choice")
    assert capsys.readouterr().out == "e\n     75.0%  it flies\n     25.0%  it runs\n"
