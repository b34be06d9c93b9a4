"""Sets as a person fetches them: files, members, pictures, the record, `mmgen data get`."""

import contextlib
import io
import json
import re
from pathlib import Path

import click
import pytest
from kit.hosts import host, moved, vqg_coco
from kit.toys import mmgen, mmgen_here
from mmgen_data import Vqg
from PIL import Image

from mmgen.cli import downloads
from mmgen.downloads import get, https
from mmgen.downloads.get import GONE, Request, fetch
from mmgen.downloads.sources import SourceSet, published_set, published_sets
from mmgen.errors import DataError
from mmgen.progress import Progress

NUMBERS = {"train": range(1, 13), "val": range(13, 17), "test": range(17, 21)}
NAME = "COCO_train2014_{:012d}.jpg".format
PICTURES = [NAME(number) for numbers in NUMBERS.values() for number in numbers]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(https, "BACKOFF", 0.001)
    monkeypatch.setattr(https, "TIMEOUT", 0.5)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def jpeg(number, size=(12, 8)):
    file = io.BytesIO()
    Image.new("RGB", size, (number, 90, 30)).save(file, "JPEG")
    return file.getvalue()


@pytest.fixture
def files():
    """VQG_COCO with twenty pictures."""
    questions = {
        f"coco_{split}_all.csv": "image_id,image_url,questions\n"
        + "".join(f"{n},https://old.org/./{NAME(n)},What is it?---Why?\n" for n in numbers)
        for split, numbers in NUMBERS.items()
    }
    rows = [{"id": n, "width": 12, "height": 8, "file_name": NAME(n)} for n in range(1, 21)]
    captions = [{"id": n, "image_id": n, "caption": f"thing {n}"} for n in range(1, 21)]
    pictures = {NAME(n): jpeg(n) for n in range(1, 21)}
    return vqg_coco(questions, pictures, {"images": rows, "annotations": captions})


def request(server, folder, images="images"):
    return Request("vqg_coco", moved(published_set("vqg_coco"), server.url), folder, images and Path(images))


def test_a_set_is_fetched_whole_and_once(files, tmp_path):
    """A data set reads it then; a second call asks the server for nothing."""
    with host(files) as server:
        wanted = request(server, tmp_path)
        assert (
            "4,998 pictures" in (said := wanted.describe(wanted.missing())) and "licence of captions: CC BY 4.0" in said
        )
        fetch(wanted, Progress())
        requests = len(server.seen)
        assert wanted.missing() == [] and "everything is there" in wanted.describe([])
        fetch(wanted, Progress())
        assert len(server.seen) == requests
    assert sorted(path.name for path in (tmp_path / "images").iterdir()) == PICTURES
    record = json.loads((tmp_path / "downloads.json").read_text())
    assert {*record["files"]} == {*(f"coco_{s}_all.csv" for s in NUMBERS), "captions_train2014.json"}
    assert {*record["pictures"]} == {*PICTURES} and "CC BY 4.0" in record["licences"]
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".zip", ".part", ".partial")]
    config = Vqg(folder=tmp_path, images="images")
    assert [len(config.build().split(split)) for split in NUMBERS] == [12, 4, 4]


def test_a_number_of_pictures_is_the_same_choice_for_everybody(files, tmp_path):
    with host(files) as server:
        for folder in ("a", "b"):
            fetch(request(server, tmp_path / folder, "images-7"), Progress())
        assert request(server, tmp_path / "c", "images-7").missing()[-1][0] == "7 pictures"
    names = [sorted(path.name for path in (tmp_path / folder / "images-7").iterdir()) for folder in ("a", "b")]
    assert names[0] == names[1] and len(names[0]) == 7


def test_a_stopped_download_goes_on(files, tmp_path, monkeypatch):
    """Ctrl-C in the middle of the pictures: what is there stays, and is not asked for again."""

    class Stopping(Progress):
        say_count = 0

        def task(self, label, total, unit="", done=0):
            if label == "pictures":
                raise KeyboardInterrupt
            return super().task(label, total, unit, done)

    with host(files) as server:
        with pytest.raises(KeyboardInterrupt):
            fetch(request(server, tmp_path), Stopping())
        archives = [path for path, _, _ in server.seen]
        for name in PICTURES[:5]:
            https.download(f"{server.url}/{name}", tmp_path / "images" / name)
        del server.seen[:]
        fetch(request(server, tmp_path), Progress())
        assert {path for path, _, _ in server.seen} == {f"/{name}" for name in PICTURES[5:]} and archives
    assert {*json.loads((tmp_path / "downloads.json").read_text())["pictures"]} == {*PICTURES}


def test_what_nobody_published_a_hash_of_must_stay_the_same(files, tmp_path):
    """Trust on first use."""
    with host(files) as server:
        fetch(request(server, tmp_path), Progress())
        (tmp_path / "images" / PICTURES[0]).unlink()
        files["/" + PICTURES[0]] = jpeg(77)
        with pytest.raises(DataError, match=r"1 of 20 pictures are missing: .*SHA-256 is .*run the same command again"):
            fetch(request(server, tmp_path), Progress())
        (tmp_path / "captions_train2014.json").unlink()
        files["/annotations_trainval2014.zip"] = vqg_coco({}, {}, {"images": []})["/annotations_trainval2014.zip"]
        with pytest.raises(DataError, match=r"captions_train2014.json: cannot be fetched: .* is another file: SHA-256"):
            fetch(request(server, tmp_path), Progress())


def test_pictures_are_looked_at(files, tmp_path):
    """One is no picture, one is cut, one has another size: not under their names."""
    whole = files["/" + PICTURES[1]]
    files |= {
        f"/{PICTURES[0]}": b"GIF",
        f"/{PICTURES[1]}": whole[: len(whole) // 2],
        f"/{PICTURES[2]}": jpeg(3, (9, 9)),
    }
    with host(files) as server, pytest.raises(DataError, match="3 of 20 pictures are missing") as error:
        fetch(request(server, tmp_path), Progress())
    assert re.search("not a readable image|has 9 x 9 pixels, expected 12 x 8", str(error.value))
    assert sorted(path.name for path in (tmp_path / "images").iterdir()) == PICTURES[3:]


def test_pictures_that_no_longer_exist_are_said_and_not_asked_for_again(files, tmp_path):
    del files["/" + PICTURES[4]]
    said = []
    progress = Progress()
    progress.say = said.append
    with host(files) as server:
        fetch(request(server, tmp_path), progress)
        assert said == [f"{tmp_path}/images: 1 of 20 pictures no longer exist: {PICTURES[4]}"]
        assert request(server, tmp_path).missing() == []
    assert json.loads((tmp_path / "downloads.json").read_text())["pictures"][PICTURES[4]] == GONE


def test_a_host_that_has_no_picture_is_given_up(files, tmp_path):
    files = {path: content for path, content in files.items() if path.endswith(".zip")}
    with host(files) as server:
        with pytest.raises(DataError, match=r"20 of 20 pictures are missing: .*the server says 404 .*run the same"):
            fetch(request(server, tmp_path), Progress())
        assert len(server.seen) < 2 * get.CONNECTIONS + 20
    assert json.loads((tmp_path / "downloads.json").read_text())["pictures"] == {}


def test_the_next_address_is_tried_and_dead_ones_are_named(tmp_path):
    file = {"urls": ["/dead.bin", "/page.bin", "/a.bin"], "name": "a.bin", "dead": {"https://x.org": "2022"}}
    with host({"/a.bin": b"abc", "/page.bin": b"<html>x</html>"}) as server:
        table = {"about": "a", "licences": {}, "files": [file | {"urls": [server.url + url for url in file["urls"]]}]}
        fetch(Request("a", SourceSet.model_validate(table), tmp_path), Progress())
        assert (tmp_path / "a.bin").read_bytes() == b"abc"
        (tmp_path / "a.bin").unlink()
        del server.files["/a.bin"]
        with pytest.raises(DataError) as error:
            fetch(Request("a", SourceSet.model_validate(table), tmp_path), Progress())
    assert re.fullmatch(
        r".*a.bin: cannot be fetched: .*dead.bin: the server says 404 Not Found; .*page.bin: the server sent a web "
        r"page, .*; https://x.org is dead since 2022; run the same command again later, or put the file there by hand",
        str(error.value),
    )


def test_a_server_without_ranges_sends_the_whole_archive(files, tmp_path):
    with host(files, lambda path: "no_ranges") as server:
        fetch(request(server, tmp_path, None), Progress())
    assert (tmp_path / "captions_train2014.json").exists() and not (tmp_path / ".annotations_trainval2014.zip").exists()


def test_a_full_disk_is_known_before(files, tmp_path, monkeypatch):
    monkeypatch.setattr(get.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 1000}))
    with host(files) as server, pytest.raises(DataError, match=r"needs 838 MB, 0 MB are free; free some space"):
        fetch(request(server, tmp_path), Progress())


def test_every_set_says_files_sizes_and_licences():
    """Addresses are https; every set has a licence, and files or steps."""
    sets = published_sets()
    expected = "coco vqg_coco vqg_flickr vqg_bing vqa1 vqa2 okvqa refcoco refcocoplus refcocog nlvr2 flickr30k vcr"
    assert {*expected.split(), "visual_genome_detector"} == {*sets}
    for source in sets.values():
        assert source.licences and (source.files or source.form)
        for entry in (*source.files, *source.pictures):
            assert all(url.startswith("https://") for url in entry.urls)
        assert {name for entry in source.pictures for name in (*entry.listed_in, entry.sizes_in) if name} <= {
            name for entry in source.files for name in entry.targets
        }


PLUGIN = """
from pathlib import Path
from typing import ClassVar, Literal
import mmgen

class Photos(mmgen.DatasetConfig):
    "Photos."
    type: Literal["my_photos"] = "my_photos"
    sources: ClassVar = Path(__file__).with_name("sources.toml")

    def build(self):
        raise NotImplementedError
"""


def test_a_plugin_adds_a_set(tmp_path):
    """`mmgen data get` shows licences, asks, and fetches it; without a terminal it needs --yes."""
    (tmp_path / "my_photos.py").write_text(PLUGIN)
    with host({"/a.bin": b"abc"}) as server:
        (tmp_path / "sources.toml").write_text(
            '[mine]\nabout = "my photos"\nlicences = { photos = "mine alone" }\n'
            f'[[mine.files]]\nurls = ["{server.url}/a.bin"]\n'
        )
        options = ("--plugin", str(tmp_path / "my_photos.py"))
        asked = mmgen(tmp_path, "data", "get", "mine", *options)
        assert asked.returncode == 1 and "error: add --yes to accept these licences" in asked.stderr
        assert "licence of photos: mine alone" in asked.stdout and server.seen == []
        assert mmgen(tmp_path, "data", "get", "mine", "--yes", *options).returncode == 0
    assert (tmp_path / "data/mine/a.bin").read_bytes() == b"abc"
    wrong = mmgen(tmp_path, "data", "get", "mime", *options)
    assert "unknown name 'mime'; did you mean 'mine'?" in wrong.stderr


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_a_person_is_asked_once(answer, files, tmp_path, monkeypatch):
    asked = []

    def confirm(text, abort):
        asked.append(text)
        if answer == "no":
            raise click.Abort

    monkeypatch.setattr(downloads.sys, "stdin", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr(downloads.click, "confirm", confirm)
    with host(files) as server, contextlib.nullcontext() if answer == "yes" else pytest.raises(click.Abort):
        downloads.ask_and_fetch([request(server, tmp_path / name) for name in "ab"], yes=False)
    assert asked == ["accept these licences, and fetch these files?"]
    assert {*map(str, tmp_path.iterdir())} == ({f"{tmp_path}/a", f"{tmp_path}/b"} if answer == "yes" else set())


def test_steps_of_a_form_are_printed(tmp_path):
    done = mmgen_here(tmp_path, "data", "get", "vcr", "--images")
    assert done.returncode == 0 and "accept the terms at visualcommonsense.com/download" in done.stdout
