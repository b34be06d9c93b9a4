"""Pictures of the page and of notebooks."""

import base64
import io
from functools import partial

from PIL import Image

from mmgen.examples import All, Example
from mmgen.parts import Dataset, Picture
from mmgen.report.pictures import find, picture_tags, thumbnail, thumbnails


def picture(key, size=(640, 320)):
    return Picture(key, partial(Image.new, "RGB", size, "red"))


class Album(Dataset):
    """Two pictures, and nothing else."""

    split = splits = describe = None

    def pictures(self):
        return map(picture, "12")


def test_a_thumbnail_shows_a_picture_as_it_looks():
    """Also that of a data set that does not make it RGB."""
    clear, grey = Image.new("RGBA", (8, 8), (0, 0, 0, 0)), Image.new("I;16", (8, 8), 257 * 90)
    for image, value in ((clear, 255), (grey, 90)):
        address, *_ = thumbnail(Picture("7", image.copy), 8)
        content = base64.b64decode(address.removeprefix("data:image/jpeg;base64,"))
        assert Image.open(io.BytesIO(content)).getpixel((4, 4)) == (value,) * 3


def test_a_notebook_has_small_jpegs_inside_the_html():
    def missing():
        raise OSError("no such file")

    tags = picture_tags([picture("<a>"), Picture("x", missing), picture("<a>")], side=100)
    start, end = '<img src="data:image/jpeg;base64,', '" width="100" height="50" alt="&lt;a&gt;">'
    assert tags.startswith(start) and tags.endswith(end) and tags.count("<img") == 2
    image = Image.open(io.BytesIO(base64.b64decode(tags[len(start) :].partition('"')[0])))
    assert image.size == (100, 50) and image.format == "JPEG"


def test_an_example_has_its_pictures_only_if_all_are_there():
    examples = [
        Example("both", {"image": All(("1", "2"))}),
        Example("half", {"image": All(("1", "9"))}),
        Example("text", {"caption": "a dog"}),
    ]
    pictures, note = find(Album(), examples)
    assert {name: [shown.key for shown in group] for name, group in pictures.items()} == {"both": ["1", "2"]}
    assert note == ""


def test_pictures_that_cannot_be_read_are_noted():
    def broken():
        raise OSError("truncated")

    shots, note = thumbnails({"a": [picture("1")], "b": [Picture("2", broken)]})
    assert [*shots] == ["a"] and note == "Unreadable pictures: 2 (truncated)"
