"""Archives and tables as ordinary data sets: their examples, their pictures, and what is refused."""

import io
import json
import pickle
import sys
import tarfile
from pathlib import Path

import pytest
from kit import served
from kit.refusals import refusal
from mmgen_data import Archives

from mmgen.errors import DataError
from mmgen.testing import DatasetSuite

COLORS = ("red", "green", "blue", "white", "pink")
COLUMNS = {"columns": {"caption": "caption"}, "targets": "questions"}


@pytest.fixture
def arrow(monkeypatch, tmp_path):
    """The package, with a cache of this test."""
    datasets = pytest.importorskip("datasets", reason='needs datasets (pip install ".[streams]")')
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    return datasets


def write_tar(path: Path, members: dict) -> str:
    """An archive of members: name -> content, or a `TarInfo` of another kind."""
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                tar.addfile(content)
                continue
            info = tarfile.TarInfo(name)
            content = content if isinstance(content, bytes) else json.dumps(content).encode()
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return str(path)


def rows(first: int, end: int) -> dict[str, dict]:
    return {f"s{n:02}": {"caption": f"{n} dogs", "questions": [f"what are {n} dogs doing?"]} for n in range(first, end)}


@pytest.fixture
def captions(arrow, tmp_path):
    """The config's keys of archives with captions and questions, three of them for training."""
    for part, (first, end) in enumerate(((0, 5), (5, 11), (11, 18), (18, 19), (19, 20)), 8):
        write_tar(tmp_path / f"part-{part:02}.tar", {f"{key}.json": row for key, row in rows(first, end).items()})
    splits = {"train": "part-{08..10}.tar", "val": "part-11.tar", "test": "part-12.tar"}
    return COLUMNS | {name: str(tmp_path / place) for name, place in splits.items()}


class TestArchives(DatasetSuite):
    @pytest.fixture(autouse=True)
    def _files(self, captions):
        self.keys = captions

    def config(self):
        return Archives(**self.keys)


def test_a_split_is_a_sequence_of_examples(captions):
    split = Archives(**captions).build().split("train")
    expected = [(key, row["caption"], tuple(row["questions"])) for key, row in rows(0, 18).items()]
    for examples in (split, [split[number] for number in range(len(split))], pickle.loads(pickle.dumps(split))):
        assert [(example.id, example.inputs["caption"], example.targets) for example in examples] == expected
    assert split[-1].id == "s17" and [example.id for example in split[4:6]] == ["s04", "s05"]
    with pytest.raises(IndexError):
        split[18]


def test_tables_have_the_same_examples(captions, arrow, tmp_path):
    expected = list(Archives(**captions).build().split("train"))
    table = arrow.Dataset.from_list([{"key": key, "about": row} for key, row in rows(0, 18).items()])
    table.to_parquet(tmp_path / "a.parquet")
    table.to_json(tmp_path / "a.jsonl")
    (tmp_path / "hub").mkdir()
    table.to_parquet(tmp_path / "hub/train.parquet")
    columns = {"columns": {"caption": "about.caption"}, "targets": "about.questions"}
    for place in ({"train": str(tmp_path / "a.parquet")}, {"train": str(tmp_path / "*.jsonl")}):
        assert list(Archives(**place, **columns).build().split("train")) == expected
    hub = Archives(hub=str(tmp_path / "hub"), train="train[:15]", val="train[15:]", **columns).build()
    assert list(hub.split("train")) + list(hub.split("val")) == expected


def test_rows_are_numbered_without_a_key(arrow, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"txt": "why?"}\n{"txt": "where?"}\n')
    examples = Archives(train=str(tmp_path / "a.jsonl"), key="").build().split("train")
    assert [(example.id, example.targets) for example in examples] == [("train-0", ("why?",)), ("train-1", ("where?",))]


def test_pictures_of_archives_and_tables(arrow, tmp_path):
    contents = {color: served.picture(color) for color in COLORS}
    tar = write_tar(tmp_path / "a.tar", {f"{color}.png": content for color, content in contents.items()})
    table = arrow.Dataset.from_dict({"key": list(contents), "photo": list(contents.values())})
    table.to_parquet(tmp_path / "bytes.parquet")
    table.cast_column("photo", arrow.Image()).to_parquet(tmp_path / "images.parquet")
    table = table.add_column("id", ["4", "5", "4", "5", "6"])
    table.to_parquet(tmp_path / "shared.parquet")
    for place in (tar, *(str(tmp_path / f"{name}.parquet") for name in ("bytes", "images"))):
        data = Archives(train=place, test=place, targets=None, picture="image" if "images" in place else "photo")
        pictures = pickle.loads(pickle.dumps(list(data.build().pictures())))
        assert [picture.key for picture in pictures] == list(COLORS)
        assert pictures[1].load().getpixel((0, 0)) == (0, 128, 0)
    shared = {"columns": {"image": "id"}, "targets": None, "picture": "photo"}
    first, second, third = Archives(train=str(tmp_path / "shared.parquet"), **shared).build().pictures()
    assert (first.key, second.key, third.key) == ("4", "5", "6")
    assert third.load().getpixel((0, 0)) == (255, 192, 203)


def test_no_file_is_opened_for_a_stranger(arrow, tmp_path):
    """Links of an archive, and paths of a table, lead nowhere."""
    (tmp_path / "secret.png").write_bytes(served.picture())
    link = tarfile.TarInfo("link.png")
    link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "secret.png")
    place = write_tar(tmp_path / "a.tar", {"good.png": served.picture(), "link.png": link, "torn.png": b"no picture"})
    good, torn = Archives(train=place).build().pictures()
    assert good.load().size == (64, 64)
    with pytest.raises(DataError, match="a.tar: 'torn': not a readable image"):
        torn.load()
    table = arrow.Dataset.from_dict({"key": ["a"], "image": [{"bytes": None, "path": str(tmp_path / "secret.png")}]})
    table.to_parquet(tmp_path / "a.parquet")
    (picture,) = Archives(train=str(tmp_path / "a.parquet")).build().pictures()
    with pytest.raises(DataError, match="a.parquet: 'a': has no picture; expected its bytes"):
        picture.load()


def test_what_cannot_be_read_is_said_in_a_line(arrow, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"key": 1, "txt": null}\n')
    (tmp_path / "torn.parquet").write_text("no parquet")
    (tmp_path / "torn.jsonl").write_text('{"key": 1, "txt"')
    for name, problem in {
        "a.jsonl": "row 0: 'txt' must be a text, a whole number, or a list of them, but is None",
        "torn.parquet": "cannot be read: Parquet magic bytes not found",
        "torn.jsonl": "cannot be read: JSON parse error",
        "none.tar": "cannot be read: Unable to find",
        "none-*.tar": "cannot be read: no such file",
    }.items():
        with pytest.raises(DataError) as error:
            list(Archives(train=str(tmp_path / name)).build().split("train"))
        assert str(error.value).startswith(f"{tmp_path / name}: {problem}") and "\n" not in str(error.value)
    message = refusal(Archives(train=str(tmp_path / "a.jsonl"), targets="text").build().split, "train")
    assert message == f"{tmp_path}/a.jsonl: no column 'text'; the columns are key, txt"


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    for place, problem in {
        "a.zip": "expected files that end in .tar, .parquet, .json, .jsonl",
        "a.tar": 'needs the package datasets; in a checkout of mmgen, run: pip install ".[streams]"',
    }.items():
        assert refusal(Archives(train=place).build().split, "train") == f"{place}: {problem}"
