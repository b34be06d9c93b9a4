"""The comparison of ways to write: its tables of toy runs, the gaps of infilling, and what is counted of questions."""

import pytest
from kit import toys
from kit.any_order import any_order

from mmgen.examples import Example, Generation
from tools import writing

THINGS = [
    {"kind": kind, "color": color, "size": "big", "place": "grass", "side": "left"}
    for kind, color in (("dog", "brown"), ("car", "red"), ("cup", "blue"))
]


@pytest.mark.slow
@pytest.mark.parametrize(("profile", "generator"), [("left_to_right", "masked"), ("any_order", "any_order")])
def test_every_way_to_write_has_a_row(profile, generator, tmp_path, no_page, capsys):
    steps = {"both": {"inputs": ["caption"], "train": ["backbone"]}}
    recipe = toys.recipe(name="writing", generator={"type": generator, "max_tokens": 24}, steps=steps)
    (tmp_path / "writing.toml").write_text(f"{recipe}[profiles.{profile}]\n")
    assert toys.mmgen_here(tmp_path, "run", "writing.toml", "--profile", profile).returncode == 0
    run = str(tmp_path / "runs/writing" / profile / "seed-0")
    writing.main([run])
    header, _, *rows = capsys.readouterr().out.partition("| way |")[2].splitlines()
    assert header == " relevance | discovery | distinct | bound | passes | ms | restored |"
    names = [*writing.WAYS.get(profile, [profile]), f"infilling, {profile}"]
    assert [row.split(" | ")[0] for row in rows] == [f"| {name}" for name in names]
    assert rows[0].endswith(" | - |") and rows[-1].count(" - ") == 1  # what was restored, and the bound
    if profile == "left_to_right":
        writing.main([run, run, "--n", "2", "--scenes", "3"])
        header, _, *rows = capsys.readouterr().out.partition("| way |")[2].splitlines()
        assert header == " different | relevant | discovered | things | distance | ms |" and len(rows) == 7


def test_half_of_the_words_are_left_out():
    backbone, text = any_order().backbone, "what color is the dog"
    partial, gaps = writing.leave_out_half(Example("a", {"caption": "red"}, (text,)), backbone)
    tokens = tuple(backbone.encode_text(text))
    assert len(gaps) == 3 and all(tokens[place : place + len(ids)] == ids for place, ids in gaps)
    assert partial.labels["text"].count("[MASK]") == sum(len(ids) for _, ids in gaps) and not partial.targets


def test_what_is_counted_of_questions():
    example = Example("a", {}, facts={"things": THINGS, "captions": ["a brown dog and a cup"]})
    texts = [
        ("where is the dog?", (1, 2, 0)),
        ("Where is the dog?", (1, 2, 0)),
        ("where is the blue car?", (1, 3, 0)),
        ("is the car bigger than the cup?", (4, 5, 0)),
    ]
    row = writing.judge([Generation("a", text, tokens, 0.0) for text, tokens in texts], example, end_id=0)
    assert row == {"different": 3, "relevant": 2, "discovered": 1, "things": 3, "distance": pytest.approx(13 / 18)}
