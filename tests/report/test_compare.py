"""Runs are compared in tables of the scores that they share, with the settings that differ."""

from mmgen.report.compare import RunComparison, _changes, _group_steps, _without_repeats
from mmgen.storage.run_folder import differences


def training(all_epochs: int, first: int, second: int) -> dict:
    return {
        "training": {"epochs": all_epochs},
        "steps": {"first": {"training": {"epochs": first}}, "second": {"training": {"epochs": second}}},
    }


def test_a_changed_training_setting_is_reported_once_unless_a_step_goes_its_own_way():
    assert _without_repeats(differences(training(1, 1, 1), training(2, 2, 2)), 2) == ["training.epochs: 1 -> 2"]
    assert _without_repeats(differences(training(1, 1, 1), training(2, 2, 1)), 2) == [
        "training.epochs: 1 -> 2",
        "steps.first.training.epochs: 1 -> 2",
    ]
    assert _without_repeats(differences(training(1, 1, 1), training(1, 1, 3)), 2) == [
        "steps.second.training.epochs: 1 -> 3"
    ]


def test_what_only_one_run_has_is_named_without_its_keys():
    first = {"seed": 1, "inputs": {"image": {"type": "grid"}}, "steps": {"both": {"inputs": ["image"]}}}
    second = {"seed": 2, "inputs": {"image": {"type": "regions"}}, "steps": {"both": {"inputs": ["image"]}, "more": {}}}
    assert _changes(("a", first), ("b", second)) == [
        "seed: 1 -> 2",
        'inputs.image.type: "grid" -> "regions"',
        "steps.more: only in b",
    ]
    assert _changes(("b", second), ("a", first))[2:] == ["steps.more: only in b"]


def test_steps_that_share_no_score_have_a_table_each():
    rows = {"a": {"x": {"bleu": 1.0}, "y": {"accuracy": 2.0}}, "b": {"x": {"cider": 3.0}, "z": {"accuracy": 4.0}}}
    assert _group_steps(rows) == [(["x"], ["bleu", "cider"]), (["y", "z"], ["accuracy"])]
    rows["b"]["z"] |= {"yes/no": 1.0, "number": 1.0}  # another task's accuracy
    assert _group_steps(rows) == [
        (["x"], ["bleu", "cider"]),
        (["y"], ["accuracy"]),
        (["z"], ["accuracy", "yes/no", "number"]),
    ]


def test_a_comparison_shows_itself_in_a_notebook():
    comparison = RunComparison(("a", "<b>"), ([["step", "run", "x"], ["both", "<b>", "1.00"]], "from a to <b>:"), {})
    assert str(comparison) == ("| step | run |    x |\n|------|-----|-----:|\n| both | <b> | 1.00 |\n\nfrom a to <b>:")
    assert repr(comparison) == "<RunComparison of a, <b>>"
    assert comparison._repr_html_() == (
        "<table>\n<tr><th>step</th><th>run</th><th>x</th></tr>\n<tr><td>both</td><td>&lt;b&gt;</td><td>1.00</td></tr>\n"
        "</table>\n<pre>from a to &lt;b&gt;:</pre>"
    )
