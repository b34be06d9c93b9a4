"""What notebooks show: examples with their pictures and texts, as HTML with every text escaped, and as plain text."""

import base64
import io

import pytest
from PIL import Image

from mmgen.parts import Picture
from mmgen.report.notebook import picture_tags
from mmgen.tensors import Example, Generation, Prediction


def picture(key="<a>", size=(400, 300)):
    return Picture(key, lambda: Image.new("RGB", size, "red"))


def missing():
    raise OSError("no such file")


EXAMPLE = Example("e<1>", {"image": "<a>", "caption": ("a dog", "two & three")}, ("what?",), facts={"objects": 5})


def test_pictures_are_small_jpegs_inside_the_html():
    tag = picture_tags([picture()], side=100)
    start = '<img src="data:image/jpeg;base64,'
    assert tag.startswith(start) and tag.endswith('" width="100" height="75" alt="&lt;a&gt;">')
    image = Image.open(io.BytesIO(base64.b64decode(tag[len(start) :].partition('"')[0])))
    assert image.size == (100, 75) and image.format == "JPEG"


def test_a_picture_that_cannot_be_read_is_left_out():
    assert picture_tags([Picture("x", missing)]) == ""


@pytest.mark.parametrize(
    ("shown", "row"),
    [
        (EXAMPLE, "<tr><td>texts</td><td>what?</td></tr>"),
        (Generation("a", "<b>", (1,), -1.0), "<tr><td>&lt;b&gt;</td><td>-1.00</td></tr>"),
        (
            Prediction("a", {"label": "<b>"}, 0.5),
            "<tr><td>{&#x27;label&#x27;: &#x27;&lt;b&gt;&#x27;}</td><td>50.0%</td>",
        ),
    ],
)
def test_values_show_themselves(shown, row):
    assert row in shown._repr_html_()
    assert "\n" not in repr(shown)


def test_the_repr_of_an_example_is_one_short_line():
    long = Example("x", {"caption": "word " * 1000}, facts={"scene": "page " * 1000})
    assert repr(long) == f"<Example 'x': caption: {('word ' * 8)[:40]}>"
