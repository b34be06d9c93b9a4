"""Drawings of attention: panels, boxes and words."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from kit.probes import EXAMPLES, subject
from mmgen_probes import Attention

from mmgen.parts import Picture

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]


def test_a_drawing_has_a_panel_a_word_with_boxes_and_words_and_its_letters_are_no_formulas(drawn, tmp_path):
    from PIL import Image

    picture = Picture("picture-0", lambda: Image.new("RGB", (300, 200), (200, 220, 240)))
    odd = replace(EXAMPLES[0], id="an/odd id", inputs={**EXAMPLES[0].inputs, "caption": "a $cat$ costs $2 \\frac"})
    probed_steps = subject("image caption", "caption", examples=[odd], pictures={"picture-0": picture})
    result = Attention().build().run(probed_steps, tmp_path)
    letters = (tmp_path / "an_odd_id.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(letters)
    assert ">s0<" in letters and ">s1<" in letters and "frac<" in letters
    assert (tmp_path / "an_odd_id.png").read_bytes()[:4] == b"\x89PNG"
    (rows,) = result.tables.values()
    assert rows[0] == ["step", "image", "caption", "marks", "what was written", "words"]
    assert rows[2][1] is None and sum(value for value in rows[1][1:5]) == pytest.approx(100)
