"""Damaged files: every reader reads them, or refuses them in one printable line that names the file.

pytest tests/test_damaged.py -k vcr                             60 examples of each file
pytest tests/test_damaged.py --hypothesis-profile nightly       3,000; "fast" has 25
"""

import base64
import contextlib
import json
import logging
import pickle
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import mmgen_data
import mmgen_tasks
import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from kit import archives, frcnn, published, results, small_runs, stores, toys
from kit.damage import check_memory, confined, damaged
from kit.small_runs import STEP
from mmgen_encoders import Bert
from mmgen_extractors import BottomUpTsv, Detector, LxmertH5, NpzFolder, VisualGenome
from mmgen_probes import parses
from PIL import Image
from safetensors.torch import save_file

import mmgen
from mmgen import scoring
from mmgen.errors import DataError, MmgenError
from mmgen.evaluation import score
from mmgen.examples import Example
from mmgen.features.extract import extract
from mmgen.features.images import SUFFIXES, open_image
from mmgen.features.store import FeatureStore
from mmgen.inference.query import read_sources
from mmgen.inference.query_pictures import as_picture
from mmgen.parts import Picture, Record
from mmgen.progress import Progress
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.report import curves
from mmgen.runs.run import report_on, run
from mmgen.storage import generations
from mmgen.storage.published_weights import read_published
from mmgen.storage.run_folder import RunFolder
from mmgen.storage.scored_examples import SavedExamples
from mmgen.training.checkpoint import Checkpoint

pytestmark = pytest.mark.slow

SPARE = 2 << 30  # bytes of memory that a reader may take beside what the process has
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
INTERNAL = re.compile(r": [\w. ]+ raises [A-Z]\w+|Traceback")  # a mistake of a part, which is no refusal
RUN = STEP.parent.parent
WEIGHTS, ENCODER = "model.safetensors", ("config.json", "tokenizer.json", "tokenizer_config.json")


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
    """Reads the split "train": its ids differ, and its texts are Unicode."""

    def read(folder: Path) -> None:
        dataset = config(folder=folder, test_split="train", validation_split="", **keys).build()
        dataset.describe()
        examples = dataset.split("train")
        assert len({one.id for one in examples}) == len(examples)
        for one in examples:
            "".join([one.id, *one.targets, *(text for text in one.inputs.values() if isinstance(text, str))]).encode()
        if "images" in keys:
            assert all(picture.key for picture in dataset.pictures())

    return read


def result(metric: Any, predictions: Any) -> Reader:
    """Predictions of a task's official metric: JSON, or the text of a table."""
    ours = "r.csv" if isinstance(predictions, str) else "r.json"

    def make(folder: Path) -> None:
        (folder / ours).write_text(predictions if isinstance(predictions, str) else json.dumps(predictions))

    files = metric.result_files()
    return Reader(make, ours, lambda at: files.read(at / ours, []))


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


def make_arrays(folder: Path) -> None:
    values, boxes = np.random.default_rng(0).random((3, 5), np.float32), np.tile(np.float32([0, 9, 50, 40]), (3, 1))
    (folder / "arrays").mkdir()
    np.savez(folder / "arrays/a.npz", x=values, bbox=boxes, image_w=100, image_h=80)
    np.save(folder / "arrays/b.npy", values)
    about = {"bbox": boxes.tolist(), "image_width": 100, "image_height": 80}
    (folder / "arrays/b_info.json").write_text(json.dumps(about))
    packed = [base64.b64encode(array.tobytes()).decode() for array in (boxes, values)]
    (folder / "f.tsv").write_text("".join("\t".join([key, "100", "80", "3", *packed]) + "\n" for key in "ab"))
    with h5py.File(folder / "f.h5", "w") as file:
        file["image_features"], file["spatial_features"] = values, np.float32([[0, 0, 1, 1, 1, 1]] * 3)
        file["pos_boxes"] = np.array([[0, 1], [1, 3]])
    write(index_json='{"25": 0, "my photo": 1}', classes_txt="cat\ndog,puppy\n")(folder)


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


def detector(folder: Path) -> Any:
    """As an export loads it."""
    return Detector().load(folder / "detector")


def make_runs(folder: Path) -> None:
    """A finished run, its export, and a stopped one."""
    shutil.copytree(small_runs.runs() / "runs", folder, dirs_exist_ok=True)
    shutil.copytree(small_runs.runs() / "stopped", folder / "stopped")
    mmgen.load(folder / RUN).save(folder / "export", extractor=False)
    (folder / "export/labels.json").write_text('{"labels": {"answers": ["red", "blue"]}}')


def ask(place: str) -> Callable[[Path], Any]:
    """Loads a run or an export, and writes a text."""
    record = Record("x", np.full((2, 5), 0.5, np.float32), np.float32([[0, 0, 1, 1], [0, 0, 0.5, 0.5]]))
    asked = Example("x", {"image": record, "caption": "a red dog"})
    return lambda folder: mmgen.load(folder / place, device="cpu").ask(asked)


def go_on(folder: Path) -> None:
    """Resumes a copy of the stopped run."""
    shutil.rmtree(folder / "copy", ignore_errors=True)
    shutil.copytree(folder / "stopped", folder / "copy")
    recipe = load(small_runs.runs() / "toy.toml", installed())[0]
    run(recipe.model_copy(update={"output": str(folder / "copy"), "metrics": {}}))


def read_results(folder: Path) -> None:
    generations.read(folder / STEP), score.read(folder / STEP), curves.read(folder / STEP / "log.jsonl")
    SavedExamples(RunFolder(folder / RUN).recipe(installed()).data, folder / RUN / "examples.jsonl").split("test")


def make_pictures(folder: Path) -> None:
    for ending in SUFFIXES:
        Image.effect_noise((23, 17), 90).convert("RGB").save(folder / f"a{ending}")


def read_pictures(folder: Path) -> None:
    [open_image(folder / f"a{ending}") for ending in SUFFIXES]


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
ANSWERED = {"image": "1.jpg", "question": "Is it?", "answer": ["yes", "no"], "choices": ["a", "b"], "choice": 1}
CSV = "image,question,answer,box\n1.jpg,Is it?,yes,0 0 1 1\n1.jpg,Is it?,no,0 0 1 1\n2.jpg,Is it?,no,0 0 1 .5\n"
CHILD = 'extends = "parent.toml"\n[profiles.small]\nseed = 2\n[training]\nepochs = 7\n'
CONLLU = (
    "1\tThe\tthe\tDET\t_\t_\t2\tdet\t_\t_\n2-3\tcat's\t_\t_\t_\t_\t_\t_\t_\t_\n2\tcat\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
)
TEXTS = [{"image_id": 25, "caption": "What is it?"}, {"image_id": 71, "caption": "Why?"}]
QUERY = {"image": {"picture": "b/c.png", "boxes": [[0, 0, 1, 1]]}, "caption": "a dog", "id": "one"}
ASKED = r"example 'x' has no|an example needs|input '\w+' \("  # a model that reads something else is a model
VQA_FILES = "v2_OpenEnded_mscoco_train2014_questions.json v2_mscoco_train2014_annotations.json"
RUN_FILES = " ".join(f"{RUN}/{name}" for name in ("recipe.json", "inputs.json", *(f"backbone/{n}" for n in ENCODER)))
EXPORTED = (
    *("recipe.json", "inputs.json", "labels.json", "steps/both/weights.safetensors"),
    *(f"backbone/{name}" for name in ENCODER),
)
LABELS = {"answers": "answer", "choices": "choices", "choice": "choice"}
READERS = {
    "vqa": Reader(published.vqa, VQA_FILES, split(mmgen_data.Vqa, release="2.0", targets="answers")),
    "vqa reversed": Reader(
        write(q_json=VQA, c_json=CAPTIONS),
        "q.json c.json",
        split(mmgen_data.Vqa, files={"train": "q.json"}, caption_files=["c.json"]),
    ),
    "vqg": Reader(write(q_csv=VQG), "q.csv", split(mmgen_data.Vqg, files={"train": "q.csv"}, caption_files=[])),
    "jsonl": Reader(write(train_jsonl=lines(ROW, ROW | {"id": "b"})), "train.jsonl", split(mmgen_data.Table)),
    "answers jsonl": Reader(
        write(train_jsonl=lines(ANSWERED, ANSWERED | {"image": "2.jpg"})),
        "train.jsonl",
        split(mmgen_data.Table, columns=LABELS),
    ),
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
    "vqa results": result(mmgen_tasks.VqaAccuracy, [{"question_id": 1, "answer": "red"}]),
    "nlvr2 results": result(mmgen_tasks.PairAccuracy, "dev-1-0-0,True\ndev-1-1-0,false\n"),
    "vcr results": result(mmgen_tasks.ChoiceAccuracy, results.VCR),
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
    "run": Reader(
        make_runs,
        RUN_FILES,
        ask(f"{RUN}"),
        rf"seed-0(/backbone)?: |(model|weights).safetensors|{ASKED}",
        lines=20,
        share=0.25,
    ),
    "trained": Reader(make_runs, f"{STEP}/weights.safetensors", ask(f"{RUN}"), share=0.25),
    "results": Reader(
        make_runs,
        f"{STEP}/generations.jsonl {STEP}/scores.json {STEP}/log.jsonl {RUN}/examples.jsonl",
        read_results,
    ),
    "page": Reader(
        make_runs,
        f"{STEP}/generations.jsonl {STEP}/scores.json {RUN}/data.json",
        lambda folder: report_on(folder / RUN, Progress(), 2),
        share=0.25,
    ),
    "checkpoint": Reader(
        make_runs,
        f"stopped/{STEP}/checkpoint.safetensors stopped/{STEP}/log.jsonl",
        lambda folder: Checkpoint(folder / "stopped" / STEP).read(100),
    ),
    "resumed": Reader(make_runs, f"stopped/{STEP}/checkpoint.safetensors", go_on, share=0.05),
    "export": Reader(
        make_runs,
        " ".join(f"export/{name}" for name in EXPORTED),
        ask("export"),
        rf"export(/backbone|/inputs.json|/steps/both/weights.safetensors)?: |{ASKED}",
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
        features(detector, lambda folder: [Picture("a", lambda: Image.new("RGB", (40, 30)))]),
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
        make_arrays,
        "f.tsv classes.txt",
        features(lambda at: BottomUpTsv(class_names=at / "classes.txt").build(), lambda at: at / "f.tsv"),
        share=0.3,
    ),
    "arrays": Reader(
        make_arrays,
        "arrays/a.npz arrays/b.npy arrays/b_info.json",
        features(lambda _: NpzFolder().build(), lambda at: at / "arrays"),
        share=0.25,
    ),
    "lxmert": Reader(
        make_arrays,
        "index.json",
        features(lambda at: LxmertH5(index=at / "index.json").build(), lambda at: at / "f.h5"),
        share=0.25,
    ),
    "parses": Reader(write(a_conllu=CONLLU), "a.conllu", lambda folder: parses.read(folder / "a.conllu")),
    "pictures": Reader(make_pictures, " ".join(f"a{end}" for end in SUFFIXES), read_pictures, share=0.3),
    "queries": Reader(
        write(q_jsonl=lines(QUERY, {"image": "photo.jpg"})), "q.jsonl", read_queries, "not a readable image"
    ),
}
CASES = [(name, file) for name, reader in READERS.items() for file in reader.files.split()]
FOUND = [  # reader, end of the file's name, some of its bytes, and what was there instead; b"" for the whole file
    ("lxmert", "index.json", b'"25"', b'"\\ud800"'),
    ("parses", "a.conllu", b"1\tThe", "²\tThe".encode()),
    ("parses", "a.conllu", b"1\tThe", b"9" * 5000 + b"\tThe"),
    ("results", "log.jsonl", b'"loss": ', b'"loss": null, "x": '),
    ("results", "log.jsonl", b'"epoch": 0.5', b'"epoch": null'),
    ("checkpoint", "log.jsonl", b'"clipped": true', b'"clipped": null'),
    ("run", "recipe.json", b'"name"', b'"\\ud800"'),
    ("export", "export/recipe.json", b'"max_tokens": 6', b'"max_tokens": 512'),
    ("export", "export/recipe.json", b'"box_words": 0.0', b'"box_words": 1.0'),
    ("detector", "preprocessor_config.json", b'"resample": 2', b'"resample": [2]'),
    ("page", "generations.jsonl", b'"tokens": [', b'"tokens": [999999, '),
    ("weights", "a.bin", b"PK", b"PK\x03\x04" + bytes(3000) + b"PK"),
    ("jsonl", "train.jsonl", b"\n", b"\n" * 5_000_000),
    ("vcr", "train.jsonl", b'"train-0"', b'"a\\nb"'),
    ("refcoco", "refs(unc).p", b"", b"]r\xff\xff\xff\x7f."),
    ("refcoco", "refs(unc).p", b"", b"\x80\x05\x96" + bytes(5) + b"\1\0\0."),
    ("refcoco", "refs(unc).p", b"", b"\x80\x04\x95" + bytes(5) + b"\1\0\0]."),
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
def quiet(monkeypatch):
    """Libraries warn about every file. No curves are drawn, which takes most of a page's time."""
    monkeypatch.setattr(curves, "draw", lambda *_, **__: "<svg></svg>")
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
