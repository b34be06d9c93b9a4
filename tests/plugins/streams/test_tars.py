"""Tar files: features from them are those of the folder, and hostile members are reported in a line."""

import itertools
import tarfile

import pytest
from kit import served
from kit.toys import mmgen_here as mmgen
from mmgen_streams import tars

from mmgen.errors import DataError
from mmgen.features.shards import Shard
from mmgen.features.store import FeatureStore

EXTRACT = ("--type", "roi", "--set", "model=test_resnet", "--set", "image_size=32", "--set", "weights=random")


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.slow
def test_features_of_archives_are_those_of_the_folder(write_tar, tmp_path):
    colors = ("red", "green", "blue", "white", "pink")
    (tmp_path / "pictures").mkdir()
    for color in colors:
        (tmp_path / "pictures" / f"{color}.png").write_bytes(served.picture(color))
    for number, part in enumerate((colors[:2], colors[2:])):
        members = {f"{color}.png": served.picture(color) for color in part}
        write_tar(tmp_path / f"p-{number:02}.tar", members | {"torn.jpg": b"no picture"} if number else members)
    for source, store in (("pictures", "f.h5"), ("p-{00..01}.tar", "t.h5")):
        done = mmgen(tmp_path, "features", "extract", source, store, *EXTRACT)
        assert done.returncode == 0, done.stderr
    assert "skipped torn: p-01.tar: torn.jpg: not a readable image" in done.stdout
    folder, archives = FeatureStore(tmp_path / "f.h5"), FeatureStore(tmp_path / "t.h5")
    assert list(archives) == list(colors)
    assert all((archives.read(key).features == folder.read(key).features).all() for key in folder)
    for number in (1, 2):
        done = mmgen(tmp_path, "features", "extract", "p-*.tar", "s.h5", *EXTRACT, "--shard", f"{number}/2")
        assert done.returncode == 0, done.stderr
    done = mmgen(tmp_path, "merge", "s.h5", "--check", "--source", "p-00.tar")
    assert done.returncode == 0 and "all shards are complete, 5 images" in done.stdout


def test_a_shard_without_pictures_of_an_archive_is_no_error(write_tar, tmp_path):
    write_tar(tmp_path / "p.tar", {"red.png": served.picture("red")})
    number = next(number for number in (1, 2) if not Shard(number, 2).owns("red"))
    done = mmgen(tmp_path, "features", "extract", "p.tar", "f.h5", *EXTRACT, "--shard", f"{number}/2")
    assert done.returncode == 0, done.stderr
    assert f"f-{number}-of-2.h5: none of the images of p.tar is in shard {number}/2; use fewer shards\n" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["p.tar"]


def test_hostile_members_are_reported_and_stop_nothing(write_tar, tmp_path, monkeypatch):
    monkeypatch.setattr(tars, "MOST_BYTES", 1000)
    (tmp_path / "secret.png").write_bytes(served.picture())
    place = write_tar(
        tmp_path / "h.tar",
        {
            "../climbs.png": served.picture(),
            "/root.png": served.picture(),
            "link.png": special("link.png", tarfile.SYMTYPE, str(tmp_path / "secret.png")),
            "hard.png": special("hard.png", tarfile.LNKTYPE, "secret.png"),
            "device.png": special("device.png", tarfile.CHRTYPE),
            "giant.png": bytes(1001),
            "folder": special("folder", tarfile.DIRTYPE),
            "good.png": served.picture(),
        },
    )
    problems = {}
    for picture in tars.pictures(place):
        try:
            assert picture.load().size == (64, 64) and picture.key == "good"
        except DataError as error:
            problems[picture.key] = str(error).removeprefix(f"{place}: ")
    outside, link = "has a name that leads out of the archive", "is not a regular file, but a link or a device"
    assert problems == {
        "../climbs": f"'../climbs.png' {outside}",
        "/root": f"'/root.png' {outside}",
        "link": f"'link.png' {link}",
        "hard": f"'hard.png' {link}",
        "device": f"'device.png' {link}",
        "giant": "'giant.png' has 1,001 bytes; the limit is 1,000",
    }


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:1024] + b"\xff" + content[1025:],  # the checksum of the second header is wrong
        lambda content: content[:1024] + bytes(512) + content[1536:],  # one block of zeros is not the end
        lambda content: content[:1324],  # half a header
    ],
)
def test_an_archive_does_not_end_at_a_damaged_header(write_tar, tmp_path, damage):
    place = write_tar(tmp_path / "a.tar", {"a.txt": b"one", "b.txt": b"two"})
    (tmp_path / "a.tar").write_bytes(damage((tmp_path / "a.tar").read_bytes()))
    with pytest.raises(DataError) as error:
        list(tars.samples(place))
    assert str(error.value) == f"{place}: not a tar file, or damaged; compressed archives must be unpacked"


def test_an_archive_may_end_without_zeros(write_tar, tmp_path):
    place = write_tar(tmp_path / "a.tar", {"a.txt": b"one", "b.txt": b"two"})
    (tmp_path / "a.tar").write_bytes((tmp_path / "a.tar").read_bytes()[:2048])
    assert [sample.key for sample in tars.samples(place)] == ["a", "b"]


def test_names_of_several_lines_are_shown_in_one(write_tar, tmp_path):
    place = write_tar(tmp_path / "a.tar", {"a\nb.json": b"[]", "c\nd.png": b"no picture"})
    sample, torn = tars.samples(place)
    with pytest.raises(DataError) as error:
        sample.fields()
    assert str(error.value) == f"{place}: 'a\\nb.json' must be a JSON object"
    assert (sample.place, torn.place) == (f"{place}: 'a\\nb'", f"{place}: 'c\\nd'")
    with pytest.raises(DataError) as error:
        torn.members[0].image()
    assert "\n" not in str(error.value)


def header(name, kind, size):
    info = tarfile.TarInfo(name)
    info.type, block = kind, None
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT)[:512])
    block[124:136] = size.to_bytes(12, "big", signed=True) if size < 0 else b"\x80" + size.to_bytes(11, "big")
    block[148:156] = b"%06o\0 " % (sum(block[:148]) + 8 * 32 + sum(block[156:]))
    return bytes(block)


@pytest.mark.parametrize(
    "content",
    [
        header("././@LongLink", tarfile.GNUTYPE_LONGNAME, 1 << 60),  # more than fits into memory
        header("a.png", tarfile.REGTYPE, 0) + header("b.png", tarfile.REGTYPE, -512),  # ends where it begins
    ],
)
def test_headers_that_would_fill_the_memory_or_never_end(tmp_path, content):
    (tmp_path / "h.tar").write_bytes(content + bytes(2048))
    with pytest.raises(DataError) as error:
        list(itertools.islice(tars.pictures(str(tmp_path / "h.tar")), 10))
    assert str(error.value) == f"{tmp_path}/h.tar: not a tar file, or damaged; compressed archives must be unpacked"
