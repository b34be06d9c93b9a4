"""Image files: opened as they look and upright, refused if they are too large, found in folders."""

import struct
from io import BytesIO

import numpy as np
import pytest
from kit.pictures import png
from mmgen_serve.limits import Limits
from PIL import Image

from mmgen.errors import DataError
from mmgen.features import images
from mmgen.features import pixels as conversion
from mmgen.features.images import MANY_PIXELS, MOST_PIXELS, image_size, open_image
from mmgen.features.picture_sources import folder_pictures
from mmgen.features.pixels import FRAMES, as_rgb, load_image
from mmgen.parts import Picture

RAMP = (np.arange(256) * 257).astype(np.uint16).reshape(16, 16)  # of 16 bits: every grey of 8 bits
GREYS = np.arange(256).reshape(16, 16, 1).repeat(3, 2)
WHITE, BLUE = [255, 255, 255], [9, 8, 200]


def saved(image, kind, **options) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def pixels(content: bytes) -> np.ndarray:
    """The pixels of a file, which must be those of Pillow's image of it too."""
    opened = np.asarray(open_image(BytesIO(content), "x"))
    assert np.array_equal(opened, np.asarray(as_rgb(Image.open(BytesIO(content)))))
    return opened


@pytest.mark.parametrize(
    "content",
    [
        saved(Image.fromarray(RAMP), "PNG"),
        saved(Image.fromarray(RAMP), "TIFF"),
        saved(Image.fromarray(RAMP), "TIFF", compression="tiff_lzw"),
        saved(Image.fromarray(RAMP.astype(">u2")), "TIFF"),
        saved(Image.fromarray(65535 - RAMP), "TIFF", tiffinfo={conversion.PHOTOMETRIC: 0}),  # 0 is white
        saved(Image.fromarray(GREYS.astype(np.uint8)), "PNG"),
        saved(Image.fromarray(GREYS[:, :, 0].astype(np.uint8)).convert("LA"), "PNG"),
    ],
    ids=["png", "tiff", "lzw", "big", "white is 0", "8 bits", "opaque"],
)
def test_grey_of_16_bits_is_that_of_8(content):
    assert np.array_equal(pixels(content), GREYS)


def test_grey_of_12_bits():
    tags = [
        (256, 2),
        (257, 1),
        (conversion.BITS, 12),
        (259, 1),
        (conversion.PHOTOMETRIC, 1),
        (273, 8),
        (277, 1),
        (279, 3),
    ]
    entries = b"".join(struct.pack("<HHIHH", tag, 3, 1, value, 0) for tag, value in tags)
    file = b"II*\0" + struct.pack("<I", 12) + b"\xff\xf8\x00\0" + struct.pack("<H", len(tags)) + entries + bytes(4)
    assert pixels(file)[:, :, 0].tolist() == [[255, 128]]


def hidden(mode: str, color=(200, 0, 0)) -> Image.Image:
    """A transparent pixel of this color, and a blue one."""
    image = Image.new("RGBA", (2, 1), (*color, 0))
    image.putpixel((1, 0), (*BLUE, 255))
    return image.convert(mode)


def palette(*alphas: int) -> bytes:
    image = Image.new("P", (2, 1))
    image.putpalette([200, 0, 0, *BLUE])
    image.putpixel((1, 0), 1)
    return saved(image, "PNG", transparency=bytes(alphas) if len(alphas) > 1 else 0)


@pytest.mark.parametrize(
    "content",
    [
        saved(hidden("RGBA"), "PNG"),
        saved(hidden("RGBA", (0, 90, 0)), "PNG"),
        saved(hidden("RGBA"), "TIFF"),
        saved(hidden("PA"), "TIFF"),
        saved(hidden("RGBA"), "GIF"),
        saved(hidden("RGBA"), "WEBP", lossless=True, exact=True),
        palette(0),
        palette(0, 255),
        saved(Image.fromarray(np.array([[[200, 0, 0], BLUE]], np.uint8)), "PNG", transparency=(200, 0, 0)),
        png(2, 1, (b"tRNS", struct.pack(">3H", 5, 6, 7)), depth=16, color=2,
            rows=b"\0" + struct.pack(">6H", 5, 6, 7, *(257 * value for value in BLUE))),
    ],
)  # fmt: skip
def test_what_is_transparent_is_white_whatever_it_hides(content):
    assert pixels(content).tolist() == [[WHITE, BLUE]]


@pytest.mark.parametrize(
    ("depth", "row", "transparent", "greys"),
    [
        (1, b"\x40", 0, [255, 255]),
        (2, b"\x60", 1, [255, 170]),
        (4, b"\x1f", 1, [255, 255]),
        (4, b"\x2e", 1, [34, 238]),
        (8, b"\x07\x09", 7, [255, 9]),
        (16, struct.pack(">2H", 300, 257 * 40), 300, [255, 40]),
    ],
)
def test_a_transparent_grey_is_that_of_the_file_s_depth(depth, row, transparent, greys):
    chunk = (b"tRNS", struct.pack(">H", transparent))
    assert pixels(png(2, 1, chunk, depth=depth, color=0, rows=b"\0" + row))[:, :, 0].tolist() == [greys]


@pytest.mark.parametrize("form", [lambda image: image, Image.Image.copy])
@pytest.mark.parametrize("depth", [1, 16])
def test_a_transparent_colour_is_known_after_loading(form, depth):
    """Pillow forgets the depth of the file: 1 of 1 bit is known by the mode, and 16 bits by a value above 255."""
    chunk, row = struct.pack(">H", 1), b"\0\x80"
    if depth == 16:
        chunk, row = struct.pack(">3H", 5, 6, 700), b"\0" + struct.pack(">6H", 5, 6, 700, *(257 * v for v in BLUE))
    image = Image.open(BytesIO(png(2, 1, (b"tRNS", chunk), depth=depth, color=depth // 8, rows=row)))
    image.load()
    assert np.asarray(as_rgb(form(image))).tolist() == [[WHITE, BLUE if depth == 16 else [0, 0, 0]]]


def test_half_of_a_colour_is_half_white_and_premultiplied_colours_are_read():
    assert np.asarray(as_rgb(Image.new("RGBA", (1, 1), (0, 0, 0, 128)))).tolist() == [[[127] * 3]]
    for mode in ("RGBa", "La"):
        image = hidden("LA" if mode == "La" else "RGBA")
        assert np.array_equal(np.asarray(as_rgb(image.convert(mode))), np.asarray(as_rgb(image)))


@pytest.mark.parametrize("mode", ["RGB", "L", "1", "P", "CMYK", "YCbCr", "LAB", "HSV"])
def test_everything_else_is_as_pillow_converts_it(mode):
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)).convert(mode)
    assert np.array_equal(np.asarray(as_rgb(image)), np.asarray(image.convert("RGB")))


@pytest.mark.parametrize(
    ("mode", "tags", "kind"),
    [
        ("I", {}, "signed integers of 32 bits"),
        ("F", {}, "floating-point numbers"),
        ("L", {conversion.SAMPLES: 2}, "signed integers of 8 bits"),
        ("I;16", {conversion.SAMPLES: 2}, "signed integers of 16 bits"),
    ],
)
def test_pixels_whose_range_is_not_known_are_refused(mode, tags, kind, tmp_path):
    Image.new(mode, (4, 4)).save(tmp_path / "a.tif", tiffinfo=tags)
    with pytest.raises(DataError) as error:
        open_image(tmp_path / "a.tif")
    advice = "whose range is not known; scale the values to 0 to 255, and give 8 bits"
    assert str(error.value) == f"{tmp_path}/a.tif: has pixels of {kind}, {advice}"


@pytest.mark.parametrize("kind", ["GIF", "PNG", "TIFF", "WEBP", "AVIF"])
def test_of_several_frames_the_first_is_read_and_they_are_counted(kind):
    if kind not in images.FORMATS:
        pytest.skip("this Pillow reads no AVIF")
    frames = [Image.new("RGB", (4, 4), color) for color in ("red", "lime", "blue")]
    content = saved(frames[0], kind, save_all=True, append_images=frames[1:])
    image = open_image(BytesIO(content))
    assert image.info[FRAMES] == 3
    assert np.abs(np.asarray(image).astype(int) - [255, 0, 0]).max() < 9  # AVIF is lossy
    assert FRAMES not in open_image(BytesIO(saved(frames[0], kind))).info
    first, second = Image.open(BytesIO(content)), Image.open(BytesIO(content))
    second.seek(1)
    assert as_rgb(first).info[FRAMES] == 3 and first.tell() == 0
    assert FRAMES not in as_rgb(second).info and second.tell() == 1  # this frame was chosen


def test_what_a_data_set_loads_may_have_any_mode():
    clear = Image.new("RGBA", (2, 2), (9, 9, 9, 0))
    assert load_image(Picture("a", clear.copy)).getpixel((0, 0)) == (255, 255, 255)
    with pytest.raises(DataError, match="^a: has pixels of floating-point numbers"):
        load_image(Picture("a", Image.new("F", (2, 2)).copy))


def test_pages_without_number_are_not_all_counted(monkeypatch):
    monkeypatch.setattr(conversion, "MOST_PAGES", 5)
    pages = [Image.new("L", (1, 1))] * 9
    assert open_image(BytesIO(saved(pages[0], "TIFF", save_all=True, append_images=pages[1:]))).info[FRAMES] == 5


def test_a_file_that_is_no_picture_is_named_whatever_it_is_called(tmp_path):
    raw = {images.SUBFILE: 1}
    box = b"\0\0\0\x18ftyp"
    unknown = (
        f"not a readable image: expected one of {', '.join(images.FORMATS)}; convert the file to one of these formats"
    )
    for name, content, reason in (
        ("a.jpg", b"", "not a readable image: the file is empty (0 bytes); get it again"),
        ("a.heic", box + b"heic\0\0\0\0mif1heic", unknown),
        (
            "c.tif",
            b"II*\0\0\0\0\0",
            "is a TIFF file with pixels of a kind that is not read, or damaged; convert it to 8 bits, such as PNG",
        ),
        ("a.nef", saved(Image.new("L", (4, 4)), "TIFF"), None),
        ("c.jpg", saved(Image.new("L", (4, 4)), "TIFF", tiffinfo=raw), None),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError) as error:
            open_image(tmp_path / name)
        reason = reason or "is a camera's raw file, with a preview; convert it to JPEG or PNG"
        assert str(error.value) == f"{tmp_path}/{name}: {reason}"


def test_pictures_are_turned_the_right_way_up(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held sideways
    Image.new("RGB", (8, 6)).save(tmp_path / "a.jpg", exif=exif)
    assert open_image(tmp_path / "a.jpg").size == (6, 8)


def test_bombs_are_refused(tmp_path, monkeypatch):
    Image.new("RGB", (30, 40)).save(tmp_path / "a.png")
    for limit in (1000, 100):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with pytest.raises(DataError) as error:
            open_image(tmp_path / "a.png")
        assert str(error.value) == (
            f"{tmp_path}/a.png: has 1,200 pixels, but at most 89,478,485 are read; make it smaller"
        )


def test_the_limit_of_pixels_is_the_same_for_files_and_in_the_service():
    assert MOST_PIXELS == Image.MAX_IMAGE_PIXELS == Limits().pixels


def test_photos_of_formats_that_are_not_read_are_reported(tmp_path, caplog):
    for name in ("b/two.heic", "a.png", "one.DNG", "b/c.jpg", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [picture.key for picture in folder_pictures(tmp_path)] == ["a", "c"]
    (tmp_path / "one.DNG").unlink()
    folder_pictures(tmp_path)
    assert caplog.messages == [
        f"{tmp_path}: skipped 2 photos, such as one.DNG: .dng and .heic files are not supported; convert them "
        "to JPEG or PNG",
        f"{tmp_path}: skipped b/two.heic: .heic files are not supported; convert them to JPEG or PNG",
    ]


@pytest.mark.slow
def test_the_size_of_a_picture_by_its_header():
    file = BytesIO()
    Image.new("1", (31_000, 30_000)).save(file, "PNG")
    assert image_size(BytesIO(file.getvalue())) == MANY_PIXELS  # more than the library opens
    small = BytesIO()
    Image.new("RGB", (7, 5)).save(small, "PNG")
    assert image_size(BytesIO(small.getvalue())) == (7, 5)
    assert image_size(BytesIO(b"no picture")) is None
