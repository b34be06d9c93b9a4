"""Sets as a person fetches them: files, members, pictures, the record, `mmgen data get`."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from kit.hosts import host, moved, vqg_coco, zipped
from kit.toys import mmgen_here
from mmgen_data import Vqg
from PIL import Image

from mmgen.cli import downloads
from mmgen.downloads import get, https
from mmgen.downloads.get import GONE, Request, fetch
from mmgen.downloads.sources import SourceSet, published_set, published_sets
from mmgen.errors import DataError
from mmgen.progress import Progress

pytestmark = pytest.mark.slow

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
    return Request("vqg_coco", folder, images and Path(images), source=moved(published_set("vqg_coco"), server.url))


def test_a_set_is_fetched_whole_and_once(files, tmp_path):
    """A data set reads it then; a second call asks the server for nothing."""
    with host(files) as server:
        wanted = request(server, tmp_path)
        said = wanted.describe(wanted.missing())
        assert "4,998 pictures" in said and "licence of captions: CC BY 4.0" in said
        fetch(wanted, Progress())
        requests = len(server.seen)
        assert wanted.missing() == [] and "everything is there" in wanted.describe([])
        fetch(wanted, Progress())
        assert len(server.seen) == requests
    assert sorted(path.name for path in (tmp_path / "images").iterdir()) == PICTURES
    record = json.loads((tmp_path / "downloads.json").read_text())
    names = {*(f"coco_{s}_all.csv" for s in NUMBERS), "captions_train2014.json"}
    assert {*record["files"]} == names | {f"images/{name}" for name in PICTURES} and "CC BY 4.0" in record["licences"]
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
    """Ctrl-C before the pictures: what is there stays, and is not asked for again."""

    def stop(wanted):
        raise KeyboardInterrupt

    with host(files) as server:
        with pytest.raises(KeyboardInterrupt), monkeypatch.context() as patch:
            patch.setattr(get, "_sizes", stop)
            fetch(request(server, tmp_path), Progress())
        archives = [path for path, _, _ in server.seen]
        for name in PICTURES[:5]:
            https.download(f"{server.url}/{name}", tmp_path / "images" / name)
        del server.seen[:]
        fetch(request(server, tmp_path), Progress())
        assert {path for path, _, _ in server.seen} == {f"/{name}" for name in PICTURES[5:]} and archives


def test_what_nobody_published_a_hash_of_must_stay_the_same(files, tmp_path):
    """Trust on first use."""
    with host(files) as server:
        fetch(request(server, tmp_path), Progress())
        (tmp_path / "images" / PICTURES[0]).unlink()
        files["/" + PICTURES[0]] = jpeg(77)
        with pytest.raises(DataError, match=r"1 of 20 files are missing: .*SHA-256 is .*run the same command again"):
            fetch(request(server, tmp_path), Progress())
        (tmp_path / "captions_train2014.json").unlink()
        files["/annotations_trainval2014.zip"] = vqg_coco({}, {}, {"images": []})["/annotations_trainval2014.zip"]
        with pytest.raises(
            DataError, match=r"1 of 2 files are missing: captions_train2014.json: .*SHA-256 is .*is another"
        ):
            fetch(request(server, tmp_path), Progress())


def test_pictures_are_looked_at(files, tmp_path):
    """One is no picture, one is cut, one has another size: not under their names."""
    whole = files["/" + PICTURES[1]]
    files |= {
        f"/{PICTURES[0]}": b"GIF",
        f"/{PICTURES[1]}": whole[: len(whole) // 2],
        f"/{PICTURES[2]}": jpeg(3, (9, 9)),
    }
    with host(files) as server, pytest.raises(DataError, match="3 of 20 files are missing") as error:
        fetch(request(server, tmp_path), Progress())
    assert re.search("sent something else|not a readable image|has 9 x 9 pixels, expected 12 x 8", str(error.value))
    assert sorted(path.name for path in (tmp_path / "images").iterdir()) == PICTURES[3:]


def test_pictures_that_no_longer_exist_are_said_and_not_asked_for_again(files, tmp_path):
    del files["/" + PICTURES[4]]
    said = []
    progress = Progress()
    progress.say = said.append
    with host(files) as server:
        fetch(request(server, tmp_path), progress)
        assert said == [f"{tmp_path}: 1 of 20 pictures no longer exist, such as images/{PICTURES[4]}"]
        assert request(server, tmp_path).missing() == []
    assert json.loads((tmp_path / "downloads.json").read_text())["files"][f"images/{PICTURES[4]}"] == GONE


def test_a_host_that_has_no_picture_is_given_up(files, tmp_path, monkeypatch):
    """After some pictures. The line says how to go on with those that are there; a run fetches nothing then."""
    for name in PICTURES[3:]:
        del files["/" + name]
    monkeypatch.setattr(get, "MOST_FAILURES", 5)
    with host(files) as server:
        for name in PICTURES[:3]:
            https.download(f"{server.url}/{name}", tmp_path / "images" / name)
        wanted = request(server, tmp_path)
        with pytest.raises(DataError, match=r"17 of 20 files are missing: .*the server says 404 .*run the same") as e:
            fetch(wanted, Progress())
        assert len(server.seen) < 5 + get.CONNECTIONS + 3 + 4  # failures, those in flight, pictures, other files
        assert GONE not in wanted.record["files"].values()
        assert str(e.value).endswith(f"`mmgen data get vqg_coco {tmp_path} --images --leave-out-missing`")
        config = Vqg(folder=tmp_path, images="images")
        assert config.download() and wanted.missing()
        done = mmgen_here(tmp_path, *re.search("`mmgen (.*)`", str(e.value))[1].split())
        assert done.returncode == 0 and wanted.missing() == []
    assert len(config.build().split("train")) == 3


def test_a_server_that_forbids_a_picture_is_asked_again(files, tmp_path):
    """403 may pass, so it is said and not recorded."""
    with host(files, lambda path: "forbidden" if path.endswith(PICTURES[4]) else "") as server:
        with pytest.raises(DataError, match=r"1 of 20 files are missing: .*: the server says 403 Forbidden; run"):
            fetch(request(server, tmp_path), Progress())
        server.fault = lambda path: ""
        fetch(request(server, tmp_path), Progress())
    assert (tmp_path / "images" / PICTURES[4]).exists()


def test_ctrl_c_does_not_wait_for_pictures(files, tmp_path):
    """The server hangs for 2 seconds a request, and every picture is tried six times. The next call goes on."""
    code = """
import sys
from pathlib import Path
from kit.hosts import moved
from mmgen.downloads.get import Request, fetch
from mmgen.downloads.sources import published_set
from mmgen.progress import Progress

class Telling(Progress):
    def task(self, label, total, unit="", done=0):
        print(total, flush=True)
        return super().task(label, total, unit, done)

source = moved(published_set("vqg_coco"), sys.argv[1])
fetch(Request("vqg_coco", Path(sys.argv[2]), Path("images"), source=source), Telling())
"""
    with host(files, lambda path: "hang" if path.endswith("jpg") else "") as server:
        arguments = [sys.executable, "-c", code, server.url, str(tmp_path)]
        environment = os.environ | {"no_proxy": "127.0.0.1", "PYTHONPATH": os.pathsep.join(sys.path)}
        process = subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert process.stdout.readline() and process.stdout.readline()  # the files, the pictures
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate(timeout=8)[1]
        assert {*json.loads((tmp_path / "downloads.json").read_text())["files"]} >= {"captions_train2014.json"}
        server.fault = lambda path: ""
        fetch(request(server, tmp_path), Progress())
    assert sorted(path.name for path in (tmp_path / "images").iterdir()) == PICTURES


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "coco_val_all.csv",
            b"image_id\n\xff\n",
            "coco_val_all.csv:2: the encoding is not UTF-8; save the file as UTF-8",
        ),
        (
            "captions_train2014.json",
            b'{"images": [',
            "captions_train2014.json: is damaged; delete it, and run the same command again",
        ),
        ("captions_train2014.json", b'{"images": 3}', "captions_train2014.json: is damaged; delete it"),
        ("captions_train2014.json", b'{"images": [{"width": 3}]}', "captions_train2014.json: is damaged; delete it"),
    ],
)
def test_a_damaged_list_of_pictures_is_a_line(name, content, message, files, tmp_path):
    with host(files) as server:
        fetch(request(server, tmp_path, None), Progress())
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=message) as error:
            fetch(request(server, tmp_path), Progress())
    assert "\n" not in str(error.value)


def test_members_that_nobody_counted_are_trusted_once(tmp_path):
    """A pattern stands for the archive that it was unpacked from."""
    table = {"about": "a", "licences": {}, "files": [{"urls": ["/a.zip"], "members": {"x/*.txt": ""}}]}
    with host({"/a.zip": zipped({"x/1.txt": "one", "x/2.txt": "two"})}) as server:
        table["files"][0]["urls"] = [f"{server.url}/a.zip"]
        wanted = Request("a", tmp_path, source=SourceSet.model_validate(table))
        fetch(wanted, Progress())
        assert wanted.missing() == [] and len(wanted.record["files"]["x/*.txt"]) == 64
        server.files["/a.zip"] = zipped({"x/1.txt": "uno", "x/2.txt": "dos"})
        for path in (tmp_path / "x").iterdir():
            path.unlink()
        with pytest.raises(DataError, match=r"x/\*.txt: .*SHA-256 is .*this is another file"):
            fetch(wanted, Progress())
    assert [*(tmp_path / "x").iterdir()] == []


def test_the_next_address_is_tried_and_dead_ones_are_named(tmp_path):
    file = {"urls": ["/dead.bin", "/page.bin", "/a.bin"], "name": "a.bin", "dead": {"https://x.org": "2022"}}
    with host({"/a.bin": b"abc\x80", "/page.bin": b"<html>x</html>"}) as server:
        table = {"about": "a", "licences": {}, "files": [file | {"urls": [server.url + url for url in file["urls"]]}]}
        fetch(Request("a", tmp_path, source=SourceSet.model_validate(table)), Progress())
        assert (tmp_path / "a.bin").read_bytes() == b"abc\x80"
        (tmp_path / "a.bin").unlink()
        del server.files["/a.bin"]
        with pytest.raises(DataError) as error:
            fetch(Request("a", tmp_path, source=SourceSet.model_validate(table)), Progress())
    assert re.fullmatch(
        r".*: 1 of 1 files are missing: a.bin: .*dead.bin: the server says 404 Not Found; .*page.bin: the server sent "
        r"something else.*; https://x.org is dead since 2022; run the same command again later, or put files there by "
        r"hand",
        str(error.value),
    )


def test_a_server_without_ranges_sends_the_whole_archive(files, tmp_path):
    with host(files, lambda path: "no_ranges") as server:
        fetch(request(server, tmp_path, None), Progress())
    assert (tmp_path / "captions_train2014.json").exists() and not (tmp_path / ".annotations_trainval2014.zip").exists()


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
    with host({"/a.bin": b"abc\x80"}) as server:
        (tmp_path / "sources.toml").write_text(
            '[mine]\nabout = "my photos"\nlicences = { photos = "mine alone" }\n'
            f'[[mine.files]]\nurls = ["{server.url}/a.bin"]\n'
        )
        options = ("--plugin", str(tmp_path / "my_photos.py"))
        asked = mmgen_here(tmp_path, "data", "get", "mine", *options)
        assert asked.returncode == 1 and "error: add --yes to accept these licences" in asked.stderr
        assert "licence of photos: mine alone" in asked.stdout and server.seen == []
        assert mmgen_here(tmp_path, "data", "get", "mine", "--yes", *options).returncode == 0
    assert (tmp_path / "data/mine/a.bin").read_bytes() == b"abc\x80"
    wrong = mmgen_here(tmp_path, "data", "get", "mime", *options)
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
    """They name the folder that was given."""
    done = mmgen_here(tmp_path, "data", "get", "vcr", "films", "--images")
    assert done.returncode == 0 and "accept the terms at visualcommonsense.com/download" in done.stdout
    assert "unpack vcr1annots.zip in films and vcr1images.zip (25 GB) in films/images" in done.stdout
    bing = mmgen_here(tmp_path, "data", "get", "vqg_bing", "bing", "--images", "--dry-run")
    assert "pictures are not fetched" in bing.stdout and "put those that you have into bing/images" in bing.stdout


def test_what_fetches_a_data_set_is_named(tmp_path):
    """With the number of pictures that the recipe names."""
    for images, option in ((None, ""), ("images", " --images"), ("images-1500", " --limit 1500")):
        with pytest.raises(DataError, match=f"`mmgen data get vqg_coco {tmp_path}{option}` fetches"):
            Vqg(folder=tmp_path, images=images).build()
