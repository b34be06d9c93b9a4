"""Archives and tables as ordinary data sets: their examples, their pictures, a run on them, and what is refused."""

import io
import json
import pickle
import sys
import tarfile
from pathlib import Path

import pytest
from kit import served, toys
from kit.toys import mmgen_here as mmgen
from mmgen_data import Archives

from mmgen.errors import DataError
from mmgen.features.store import FeatureStore
from mmgen.testing import DatasetSuite

COLORS = ("red", "green", "blue", "white", "pink")
COLUMNS = {"columns": {"caption": "caption"}, "targets": "questions"}
EXTRACT = ("--type", "roi", "--set", "model=test_resnet", "--set", "image_size=32", "--set", "weights=random")


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
    texts = {f"s{number:02}": (f"{number} dogs", f"what are {number} dogs doing?") for number in range(first, end)}
    return {
        key: {"id": f"train-{key}", "caption": text, "questions": [question]} for key, (text, question) in texts.items()
    }


@pytest.fixture
def captions(arrow, tmp_path):
    """The config's keys of archives with captions and questions, three of them for training."""
    for part, (first, end) in enumerate(((0, 5), (5, 11), (11, 18), (18, 19), (19, 20))):
        write_tar(tmp_path / f"part-{part}.tar", {f"{key}.json": row for key, row in rows(first, end).items()})
    splits = {"train": "part-{0..2}.tar", "val": "part-3.tar", "test": "part-4.tar"}
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


def test_many_rows_are_read_at_a_time(arrow, tmp_path, monkeypatch):
    monkeypatch.setattr("mmgen_data.archives.ROWS", 3)
    (tmp_path / "a.jsonl").write_text("".join(f'{{"key": {number}, "txt": "why?"}}\n' for number in range(8)))
    examples = Archives(train=str(tmp_path / "a.jsonl")).build().split("train")
    assert [example.id for example in examples] == list("01234567")


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
    pictures = list(Archives(train=str(tmp_path / "shared.parquet"), **shared).build().pictures())
    assert [(picture.key, picture.load().getpixel((0, 0))) for picture in pictures] == [
        ("4", (255, 0, 0)),
        ("5", (0, 128, 0)),
        ("6", (255, 192, 203)),
    ]


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


@pytest.mark.slow
def test_features_of_archives_are_those_of_the_folder(arrow, tmp_path):
    (tmp_path / "pictures").mkdir()
    for color in COLORS:
        (tmp_path / "pictures" / f"{color}.png").write_bytes(served.picture(color))
    for number, part in enumerate((COLORS[:2], COLORS[2:])):
        members = {f"{color}.png": served.picture(color) for color in part}
        write_tar(tmp_path / f"p-{number:02}.tar", members | {"torn.png": b"no picture"} if number else members)
    for source, store in (("pictures", "f.h5"), ("p-{00..01}.tar", "t.h5")):
        done = mmgen(tmp_path, "features", "extract", source, store, *EXTRACT)
        assert done.returncode == 0, done.stderr
    assert "skipped torn: p-{00..01}.tar: 'torn': not a readable image" in done.stdout
    folder, archives = FeatureStore(tmp_path / "f.h5"), FeatureStore(tmp_path / "t.h5")
    assert list(archives) == list(COLORS)
    assert all((archives.read(key).features == folder.read(key).features).all() for key in folder)


@pytest.mark.slow
@pytest.mark.usefixtures("no_page")
def test_a_run_on_archives_is_one_on_a_list(captions, tmp_path):
    for name, part in (("train", rows(0, 18)), ("val", rows(18, 19)), ("test", rows(19, 20))):
        lines = (json.dumps({**row, "id": key, "image": key}) + "\n" for key, row in part.items())  # id: train-s00
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    weights, folder = [], {"type": "jsonl", "folder": str(tmp_path)}
    for name, keys in (("archives", {"type": "archives", "key": "id", **captions}), ("lists", folder)):
        text = toys.recipe(
            name=name,
            training={"epochs": 2, "batch_size": 4, "micro_batch_size": 3, "num_workers": 2},
            steps={"first": {"inputs": ["caption"], "train": ["backbone"]}},
            data={"train_size": None, "val_size": None, "test_size": None, **keys},
            metrics={"meaning": {"type": "diversity"}},
        )
        (tmp_path / f"{name}.toml").write_text(text)
        done = mmgen(tmp_path, "run", f"{name}.toml")
        assert done.returncode == 0, done.stderr
        weights.append((tmp_path / f"runs/{name}/default/seed-0/steps/first/weights.safetensors").read_bytes())
    assert weights[0] == weights[1]


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
    with pytest.raises(DataError) as error:
        Archives(train=str(tmp_path / "a.jsonl"), targets="text").build().split("train")
    assert str(error.value) == f"{tmp_path}/a.jsonl: no column 'text'; the columns are key, txt"


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    for place, problem in {
        "a.zip": "expected files that end in .tar, .parquet, .json, .jsonl",
        "a.tar": 'needs the package datasets; in a checkout of mmgen, run: pip install ".[streams]"',
    }.items():
        with pytest.raises(DataError) as error:
            Archives(train=place).build().split("train")
        assert str(error.value) == f"{place}: {problem}"


def test_ranges_count_with_leading_zeros():
    from mmgen_data.archives import files_of

    assert files_of("a-{08..10}.tar") == ["a-08.tar", "a-09.tar", "a-10.tar"]
    assert files_of("s3://b/{0..1}/{2..3}.tar") == [f"s3://b/{a}/{b}.tar" for a in (0, 1) for b in (2, 3)]
    assert files_of("a{1}.tar") == ["a{1}.tar"]
