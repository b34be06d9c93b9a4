"""Damaged files of strangers: every reader reads them, or refuses them in one printable line that names the file.

pytest tests/test_damaged.py -k vcr                             30 examples of each file
pytest tests/test_damaged.py --hypothesis-profile nightly       3,000
"""

import base64
import contextlib
import gzip
import json
import logging
import pickle
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mmgen_data
import mmgen_tasks
import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kit import archives, arrays, frcnn, published, small_runs, stores, toys
from kit.memory import check_memory, confined
from mmgen_encoders import Bert
from mmgen_extractors import BottomUpTsv, Detector, LxmertH5, NpzFolder, VisualGenome
from mmgen_metrics.scoring import files as scoring
from mmgen_probes import parses
from PIL import Image
from safetensors.torch import save_file

import mmgen
from mmgen.errors import DataError, MmgenError
from mmgen.examples import Example
from mmgen.features.extract import extract
from mmgen.features.images import SUFFIXES, open_image
from mmgen.features.store import FeatureStore
from mmgen.inference.query import read_sources
from mmgen.inference.query_pictures import as_picture
from mmgen.parts import Picture, Record
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.storage.published_weights import read_published

pytestmark = pytest.mark.slow

SPARE = 2 << 30  # bytes of memory that a reader may take beside what the process has
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
INTERNAL = re.compile(r": [\w. ]+ raises [A-Z]\w+|Traceback")  # a mistake of a part, which is no refusal
WEIGHTS, ENCODER = "model.safetensors", ("config.json", "tokenizer.json", "tokenizer_config.json")

# Damage: by the file's structure three times in four, else byte by byte; now and then packed

ODD = r"""[null, true, -1, 0, 1, 1.5, 9223372036854775808, 1000000000000000000000000000000, 1e308, NaN, Infinity, "",
    "x", " ", "a\nb", "\u0000", "\ud800", "\u001b[2J", "\u202e", "../../etc/passwd", "/etc/passwd", "1e5", "<script>",
    "F16", "I64", [], [[]], [null], {}, {"": {}}, {"type": "x"}, {"text": "x"}, [0, 1000000000000], [2, 0], ["a", 1]]"""
VALUES = st.sampled_from([*json.loads(ODD), "x" * 3000, "9" * 5000]) | st.integers() | st.text(max_size=5)
PIECES = [b"", b"\0", b"\xff", b'"', b"\n", b"\r", b"nan", b"1e999", b"9" * 5000, b"[" * 3000, b'{"a":' * 2000]
LINES = r"""x = [|[training]|[[steps]]|a.b = 1|x = 1979-05-27|epochs = 10000000000|extends = 'toy.toml'|profile = 'x'
[inputs.'../x']|[profiles."a\nb"]|"a\nb" = 1|[/EN#1/people a]|[/EN#x/people a]|[/EN#2/a/b c
<!DOCTYPE a [<!ENTITY b 'x'>]>|&b;|<object><name>9</name><bndbox/></object>|<xmin>nan</xmin>|"""


def nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every nested value."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, key
        yield from nodes(inner)


def change(draw: Any, value: Any) -> Any:
    """One value somewhere in a container becomes another one, or is lost, doubled, wrapped, or under another name."""
    holder, key = draw(st.sampled_from([*nodes(value)]))
    what = draw(st.sampled_from(["other"] * 4 + ["lost", "wrapped", "text", "moved"]))
    if what == "lost":
        del holder[key]
    elif what != "moved":
        holder[key] = [holder[key]] if what == "wrapped" else str(holder[key]) if what == "text" else draw(VALUES)
    elif isinstance(holder, list):
        holder.insert(key, holder[key])
    else:
        holder[draw(st.sampled_from(["", "a\nb", "\ud800", "id", "type", f"{key}x"]))] = holder.pop(key)
    return value


def in_json(draw: Any, data: bytes) -> bytes:
    """A value of a JSON text, or of one of JSON lines."""
    try:
        rows = [json.loads(data)]
    except ValueError:
        rows = [json.loads(line) for line in data.splitlines()]
    return "\n".join(map(json.dumps, change(draw, rows))).encode()


def in_cells(draw: Any, data: bytes) -> bytes:
    """A cell of a table, or what separates the cells of a row."""
    rows, separator = data.split(b"\n"), b"\t" if b"\t" in data else b","
    place = draw(st.integers(0, len(rows) - 1))
    cells = rows[place].split(separator)
    texts = VALUES.map(lambda value: str(value).encode("utf-8", "surrogatepass"))
    arrays = st.lists(st.floats(width=32), max_size=20).map(lambda some: base64.b64encode(np.float32(some).tobytes()))
    cells[draw(st.integers(0, len(cells) - 1))] = draw(texts | arrays | st.sampled_from([*cells, *PIECES]))
    rows[place] = draw(st.sampled_from([separator] * 3 + [b";", b" "])).join(cells)
    return b"\n".join(rows)


def in_lines(draw: Any, data: bytes) -> bytes:
    """A line that is lost, doubled, another one, or has another value behind its "="."""
    rows = data.decode().split("\n")
    place = draw(st.integers(0, len(rows) - 1))
    row, other = rows[place], draw(st.sampled_from([*re.split(r"\||\n", LINES), "x = {" + "a={" * 3000, "<a>" * 500]))
    value = draw(VALUES.map(json.dumps) | st.sampled_from(["", "07:32:00", "{ type = 3 }", "'''a\nb'''"]))
    with_value = [f"{row.partition('=')[0]}= {value}"]
    rows[place : place + 1] = draw(st.sampled_from([[], [row, row], [other], [row, other], *[with_value] * 4]))
    return "\n".join(rows).encode("utf-8", "surrogatepass")


def in_pickle(draw: Any, data: bytes) -> bytes:
    """A value of a pickle."""
    return pickle.dumps(change(draw, [pickle.loads(data), None])[0], draw(st.sampled_from([0, 1, 2, 4])))


def in_header(draw: Any, data: bytes) -> bytes:
    """A value of the header of safetensors, or its length."""
    length = int.from_bytes(data[:8], "little")
    text = json.dumps(change(draw, [json.loads(data[8 : 8 + length]), None])[0]).encode()
    claimed = draw(st.sampled_from([len(text)] * 6 + [0, len(text) + 8, 2**63]))
    return claimed.to_bytes(8, "little") + text + data[8 + length :]


def in_bytes(draw: Any, data: bytes) -> bytes:
    """Bytes that are lost, doubled, turned, or others; sometimes nothing behind them."""
    first = draw(st.integers(0, len(data)))
    last = draw(st.integers(first, min(len(data), first + 200)))
    turned = bytes(byte ^ 1 << draw(st.integers(0, 7)) for byte in data[first : first + 1]) + data[first + 1 : last]
    other = draw(st.sampled_from([turned, data[first:last] * 2, bytes(last - first), *PIECES]) | st.binary(max_size=8))
    return data[:first] + other + draw(st.sampled_from([data[last:], data[last:], b""]))


BY_ENDING = {
    **dict.fromkeys((".json", ".jsonl"), in_json),
    **dict.fromkeys((".csv", ".tsv", ".conllu"), in_cells),
    **dict.fromkeys((".toml", ".txt", ".xml"), in_lines),
    **{".p": in_pickle, ".safetensors": in_header},
}
PACKED = [gzip.compress, lambda data: b"\xef\xbb\xbf" + data, lambda data: data.replace(b"\n", b"\r\n")]


@st.composite
def damaged(draw: Any, whole: bytes, ending: str) -> bytes:
    """A damaged copy of a whole file, whose name ends in `ending`."""
    way = draw(st.sampled_from([in_bytes, *[BY_ENDING.get(ending, in_bytes)] * 3]))
    return draw(st.sampled_from([bytes] * 9 + PACKED))(way(draw, whole))


# Formats


@dataclass(frozen=True)
class Reader:
    """A format.

    make   writes whole files into a folder
    files  their names; each is damaged in a test of its own, and a line names one of them
    read   mmgen's reading of the folder
    named  what a line may name instead
    lines  how many mistakes may be listed
    share  of the profile's examples; less where reading takes long
    """

    make: Callable[[Path], Any]
    files: str
    read: Callable[[Path], Any]
    named: str = r"\A\Z"
    lines: int = 1
    share: float = 1


def write(**texts: str) -> Callable[[Path], Any]:
    """Writes files, whose names have "_" for "."."""
    return lambda folder: [(folder / name.replace("_", ".")).write_text(text) for name, text in texts.items()]


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def split(config: Any, **keys: Any) -> Callable[[Path], None]:
    """Reads the split "train": its texts are Unicode."""

    def read(folder: Path) -> None:
        dataset = config(folder=folder, test_split="train", validation_split="", **keys).build()
        dataset.describe()
        examples = dataset.split("train")
        for one in examples:
            "".join([one.id, *one.targets, *(text for text in one.inputs.values() if isinstance(text, str))]).encode()
        if "images" in keys:
            assert all(picture.key for picture in dataset.pictures())

    return read


def result(metric: Any, name: str, predictions: str) -> Reader:
    """Predictions of a task's official metric."""
    files = metric.result_files()
    return Reader(write(**{name.replace(".", "_"): predictions}), name, lambda at: files.read(at / name, []))


def features(config: Callable[[Path], Any], source: Callable[[Path], Any]) -> Callable[[Path], None]:
    """Imports features. What cannot be read is left out, with a reason."""

    def read(folder: Path) -> None:
        shutil.rmtree(folder / "made", ignore_errors=True)
        done = extract(config(folder), source(folder), folder / "made", dtype="float32")
        for _, reason in done.broken:
            check(reason, re.escape(str(folder)))
        if done.failure:
            raise DataError(done.failure)
        store = FeatureStore(folder / "made")
        assert all(np.isfinite(store.read(key).features).all() for key in store)

    return read


def make_stores(folder: Path) -> None:
    stores.fill(folder / "s", [stores.classified("25", 3), stores.record("my photo", 2)])


def read_stores(folder: Path) -> None:
    store = FeatureStore(folder / "s")
    store.describe(), [store.read(key) for key in store]


def make_weights(folder: Path) -> None:
    tensors = {"bert.words": torch.randn(6, 4), "bert.bias": torch.randn(4).half(), "cls.bias": torch.randn(3)}
    torch.save(tensors, folder / "a.bin")
    torch.save({"state_dict": tensors, "epoch": 3}, folder / "old.pt", _use_new_zipfile_serialization=False)
    (folder / "shards").mkdir()
    save_file(tensors, folder / "shards/model-1.safetensors")
    table = {"metadata": {}, "weight_map": dict.fromkeys(tensors, "model-1.safetensors")}
    (folder / "shards/model.safetensors.index.json").write_text(json.dumps(table))


def make_networks(folder: Path) -> None:
    """Folders of an encoder and of a detector."""
    backbone = toys.model().backbone
    for part in (backbone.model, backbone.tokenizer):
        part.save_pretrained(folder / "encoder")
    archives.yolos(folder / "detector")


def make_export(folder: Path) -> None:
    mmgen.load(small_runs.drawn("writes")).save(folder / "export", extractor=False)
    (folder / "export/labels.json").write_text('{"labels": {"answers": ["red", "blue"]}}')


def ask(folder: Path) -> None:
    """Loads an export, and writes a text."""
    record = Record("x", np.full((2, 288), 0.5, np.float32), np.float32([[0, 0, 1, 1], [0, 0, 0.5, 0.5]]))
    asked = Example("x", {"image": record, "caption": "a red dog"})
    mmgen.load(folder / "export", device="cpu").ask(asked)


def make_pictures(folder: Path) -> None:
    for ending in SUFFIXES:
        Image.effect_noise((23, 17), 90).convert("RGB").save(folder / f"a{ending}")


def read_queries(folder: Path) -> None:
    """Every query as it is looked at when it is its turn."""
    for query in read_sources([folder / "q.jsonl"]):
        for value in query.inputs.values():
            with contextlib.suppress(ValueError):
                if (picture := as_picture(value, query.id, query.folder)) is not None:
                    picture.load()


CAPTIONS = json.dumps({"annotations": [{"image_id": n % 2, "id": n, "caption": "A dog."} for n in range(4)]})
VQA = json.dumps({"questions": [{"image_id": n % 2, "question": "What is  it?", "question_id": n} for n in range(3)]})
VQG = 'image_id,image_url,questions\n25,http://x/25.jpg,What is it?---Why?\n71,http://x/71.jpg,"Is it, or not?---Who"\n'
ROW = {"id": 25, "image": "25.jpg", "captions": ["A dog", "Wood"], "questions": ["What?", "Why?"], "place": "park"}
CSV = "image,question,answer,box\n1.jpg,Is it?,yes,0 0 1 1\n1.jpg,Is it?,no,0 0 1 1\n2.jpg,Is it?,no,0 0 1 .5\n"
CHILD = 'extends = "parent.toml"\n[profiles.small]\nseed = 2\n[training]\nepochs = 7\n'
CONLLU = (
    "1\tThe\tthe\tDET\t_\t_\t2\tdet\t_\t_\n2-3\tcat's\t_\t_\t_\t_\t_\t_\t_\t_\n2\tcat\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
)
TEXTS = [{"image_id": 25, "caption": "What is it?"}, {"image_id": 71, "caption": "Why?"}]
QUERY = {"image": {"picture": "b/c.png", "boxes": [[0, 0, 1, 1]]}, "caption": "a dog", "id": "one"}
VQA_FILES = "v2_OpenEnded_mscoco_train2014_questions.json v2_mscoco_train2014_annotations.json"
SETTINGS = ("recipe.json", "inputs.json", "labels.json", *(f"backbone/{name}" for name in ENCODER))
READERS = {
    "vqa": Reader(published.vqa, VQA_FILES, split(mmgen_data.Vqa, release="2.0", targets="answers")),
    "vqg": Reader(write(q_csv=VQG), "q.csv", split(mmgen_data.Vqg, files={"train": "q.csv"}, caption_files=[])),
    "jsonl": Reader(write(train_jsonl=lines(ROW, ROW | {"id": "b"})), "train.jsonl", split(mmgen_data.Table)),
    "answers csv": Reader(
        write(train_csv=CSV), "train.csv", split(mmgen_data.Table, columns={"answers": "answer", "box": "box"})
    ),
    "captions": Reader(
        write(c_json=CAPTIONS, out_txt="25\n71\n"),
        "c.json out.txt",
        split(mmgen_tasks.CocoCaptions, files={"train": ["c.json"]}, held_out="out.txt"),
    ),
    "nlvr2": Reader(published.nlvr2, "train.json", split(mmgen_tasks.Nlvr2)),
    "vcr": Reader(
        published.vcr,
        "train.jsonl vcr1images/lsmdc_film/train_00.23@0.json",
        split(mmgen_tasks.Vcr, subtask="every", images="vcr1images"),
    ),
    "refcoco": Reader(published.refcoco, "instances.json refs(unc).p", split(mmgen_tasks.Refcoco)),
    "flickr30k": Reader(
        published.flickr30k,
        "train.txt Sentences/1000.txt Annotations/1000.xml",
        split(mmgen_tasks.Flickr30kEntities),
        "Sentences/|Annotations/",
    ),
    "vqa results": result(mmgen_tasks.VqaAccuracy, "r.json", '[{"question_id": 1, "answer": "red"}]'),
    "nlvr2 results": result(mmgen_tasks.PairAccuracy, "r.csv", "dev-1-0-0,True\ndev-1-1-0,false\n"),
    "vcr results": result(mmgen_tasks.ChoiceAccuracy, "r.csv", published.VCR_RESULTS),
    "texts": Reader(
        write(r_json=json.dumps(TEXTS), r_jsonl=lines([{"id": "25", "text": "What?"}], {"id": 71, "texts": ["a"]})),
        "r.json r.jsonl",
        lambda folder: [scoring.read_predictions(folder / name) for name in ("r.json", "r.jsonl")],
    ),
    "references": Reader(
        write(r_json=VQA), "r.json", lambda folder: scoring.read_references(folder / "r.json", installed())
    ),
    "recipe": Reader(
        write(parent_toml=toys.RECIPE, toy_toml=CHILD),
        "toy.toml parent.toml",
        lambda folder: load(folder / "toy.toml", installed()),
        "/etc/passwd",  # as the parent
        lines=60,
    ),
    "export": Reader(
        make_export,
        " ".join(f"export/{name}" for name in (*SETTINGS, "steps/both/weights.safetensors")),
        ask,
        # a model that reads something else is a model
        r"export(/backbone|/inputs.json|/steps/both/weights.safetensors)?: |example 'x' has no|an example needs|"
        r"input '\w+' \(",
        lines=20,
        share=0.25,
    ),
    "encoder": Reader(
        make_networks,
        " ".join(f"encoder/{name}" for name in (WEIGHTS, *ENCODER)),
        lambda folder: Bert(weights=str(folder / "encoder")).build().encode_text("a red dog"),
        "/encoder",
        share=0.25,
    ),
    "detector": Reader(
        make_networks,
        "detector/config.json detector/preprocessor_config.json detector/model.safetensors",
        features(
            lambda folder: Detector().load(folder / "detector"),  # as an export loads it
            lambda _: [Picture("a", lambda: Image.new("RGB", (40, 30)))],
        ),
        "/detector(: |')",
        share=0.25,
    ),
    "frcnn": Reader(
        lambda folder: frcnn.published(folder / "frcnn"),
        "frcnn/pytorch_model.bin frcnn/objects_vocab.txt frcnn/attributes_vocab.txt",
        lambda folder: VisualGenome(weights=folder / "frcnn").build(),
        share=0.25,
    ),
    "weights": Reader(
        make_weights,
        "a.bin old.pt shards/model-1.safetensors shards/model.safetensors.index.json",
        lambda folder: [list(read_published(str(folder / name)).values()) for name in ("a.bin", "old.pt", "shards")],
        "shards",
    ),
    "stores": Reader(make_stores, "s/part-00000.h5", read_stores, share=0.25),
    "tsv": Reader(
        arrays.write,
        "f.tsv classes.txt",
        features(lambda at: BottomUpTsv(class_names=at / "classes.txt").build(), lambda at: at / "f.tsv"),
        share=0.3,
    ),
    "arrays": Reader(
        arrays.write,
        "arrays/a.npz arrays/b.npy arrays/b_info.json",
        features(lambda _: NpzFolder().build(), lambda at: at / "arrays"),
        share=0.25,
    ),
    "lxmert": Reader(
        arrays.write,
        "index.json",
        features(lambda at: LxmertH5(index=at / "index.json").build(), lambda at: at / "f.h5"),
        share=0.25,
    ),
    "parses": Reader(write(a_conllu=CONLLU), "a.conllu", lambda folder: parses.read(folder / "a.conllu")),
    "pictures": Reader(
        make_pictures,
        " ".join(f"a{ending}" for ending in SUFFIXES),
        lambda folder: [open_image(folder / f"a{ending}") for ending in SUFFIXES],
        share=0.3,
    ),
    "queries": Reader(
        write(q_jsonl=lines(QUERY, {"image": "photo.jpg"})), "q.jsonl", read_queries, "not a readable image"
    ),
}
CASES = [(name, file) for name, reader in READERS.items() for file in reader.files.split()]
FOUND = [  # reader, end of the file's name, some of its bytes, and what was there instead; b"" for the whole file
    ("lxmert", "index.json", b'"25"', b'"\\ud800"'),
    ("parses", "a.conllu", b"1\tThe", "²\tThe".encode()),
    ("parses", "a.conllu", b"1\tThe", b"9" * 5000 + b"\tThe"),
    ("export", "export/recipe.json", b'"max_tokens": 8', b'"max_tokens": 512'),
    ("export", "export/recipe.json", b'"box_words": 0.0', b'"box_words": 1.0'),
    ("detector", "preprocessor_config.json", b'"resample": 2', b'"resample": [2]'),
    ("weights", "a.bin", b"PK", b"PK\x03\x04" + bytes(3000) + b"PK"),
    ("jsonl", "train.jsonl", b"\n", b"\n" * 5_000_000),
    ("vcr", "train.jsonl", b'"train-0"', b'"a\\nb"'),
    ("refcoco", "refs(unc).p", b"", b"]r\xff\xff\xff\x7f."),
    ("refcoco", "refs(unc).p", b"", b"\x80\x05\x96" + bytes(5) + b"\1\0\0."),
    ("refcoco", "refs(unc).p", b"", b"]" * 300_000 + b"a" * 299_999 + b"."),
    ("refcoco", "refs(unc).p", b"", b"]q\0h\0a."),
    ("refcoco", "refs(unc).p", b"", pickle.dumps([published.refs(7)[0]] * 50_000, 2)),
]


def check(message: str, named: str, most: int = 1) -> None:
    """One line a mistake: of limited length, printable, and the first names the file."""
    rows = message.split("\n")
    assert len(rows) <= most and re.search(named, rows[0]), message
    assert not any(len(row) > 1000 or UNPRINTABLE.search(row) or INTERNAL.search(row) for row in rows), message


@pytest.fixture(autouse=True)
def quiet():
    """Libraries warn about every file."""
    logging.disable(logging.CRITICAL)
    with confined(SPARE):
        yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(("name", "file"), CASES)
def test_a_damaged_file_is_read_or_refused_in_a_line(name, file, tmp_path):
    reader, path = READERS[name], tmp_path / file
    reader.make(tmp_path)
    whole, names = path.read_bytes(), "|".join(re.escape(Path(name).name) for name in reader.files.split())
    reader.read(tmp_path)

    @settings(max_examples=max(1, int(settings().max_examples * reader.share)))
    @given(damaged(whole, path.suffix))
    def read(data: bytes) -> None:
        path.write_bytes(data)
        try:
            reader.read(tmp_path)
        except MmgenError as error:
            check(str(error), f"{reader.named}|{names}", reader.lines)
            if file != "old.pt":  # of which torch asks for 4 GB where a text claims it, and fills as much as there is
                check_memory(error, tmp_path)

    for found_by, end, old, new in FOUND:
        if found_by == name and file.endswith(end):
            assert old in whole
            read = example(whole.replace(old, new, 1) if old else new)(read)
    read()
