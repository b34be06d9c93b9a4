"""What notebooks show: examples with their pictures and texts, as HTML with every text escaped, and as plain text."""

import base64
import io
from types import SimpleNamespace

from PIL import Image

from mmgen.errors import DataError
from mmgen.examples import Example, Generation
from mmgen.parts import Picture
from mmgen.report.notebook import PictureSheet, picture_tags


def picture(key="<a>", size=(400, 300)):
    return Picture(key, lambda: Image.new("RGB", size, "red"))


def missing():
    raise OSError("no such file")


def none():
    raise DataError("the data set has no <pictures>")


EXAMPLE = Example("e<1>", {"image": "<a>", "caption": ("a dog", "two & three")}, ("what?",), facts={"objects": 5})
DATASET = SimpleNamespace(pictures=lambda: [picture()])


def test_pictures_are_small_jpegs_inside_the_html():
    tag = picture_tags([picture()], side=100)
    start = '<img src="data:image/jpeg;base64,'
    assert tag.startswith(start) and tag.endswith('" width="100" height="75" alt="&lt;a&gt;">')
    image = Image.open(io.BytesIO(base64.b64decode(tag[len(start) :].partition('"')[0])))
    assert image.size == (100, 75) and image.format == "JPEG"


def test_a_picture_that_cannot_be_read_is_left_out():
    assert picture_tags([Picture("x", missing)]) == ""


def test_a_sheet_shows_pictures_texts_and_scores():
    sheet = PictureSheet(DATASET, [EXAMPLE], [[Generation("e<1>", "is <it> red?", (1,), -0.5)]])
    html = sheet._repr_html_()
    assert html.count("<img ") == 1 and "<a>" not in html
    assert "<tr><th>example</th><th>e&lt;1&gt;</th></tr>" in html
    assert "<tr><td>caption</td><td>a dog / two &amp; three</td></tr>" in html
    assert "<tr><td>text, score -0.50</td><td>is &lt;it&gt; red?</td></tr>" in html
    assert repr(sheet) == "<PictureSheet of 1 examples>"
    assert [line.split("|")[2].strip() for line in str(sheet).splitlines() if "text," in line] == ["is <it> red?"]


def test_a_data_set_without_pictures_shows_the_texts():
    html = PictureSheet(SimpleNamespace(pictures=none), [EXAMPLE])._repr_html_()
    assert "<img" not in html and "<td>what?</td>" in html
    assert html.endswith("\n<p>No pictures: the data set has no &lt;pictures&gt;</p>")


def test_the_repr_of_an_example_is_one_short_line():
    long = Example("x", {"caption": "word " * 1000}, facts={"scene": "page " * 1000})
    assert repr(long) == f"<Example 'x': caption: {('word ' * 8)[:40]}>"
