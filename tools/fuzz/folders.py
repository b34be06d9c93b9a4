"""Fuzzing of run folders: weights, the files beside them, the results of steps, and a checkpoint to resume from."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import shutil
import struct
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from mmgen.storage.recipe_file import STARTED

from . import mutations
from .harness import Surface
from .recipes import _same

RUN_NAMED = r"\.json|\.safetensors|\.h5|example 'x' has no|far too large weights"  # an input may read another field
RECIPE = """\
name = "toy"
[backbone]
type = "bert"
num_hidden_layers = 1
hidden_size = 16
num_attention_heads = 2
vocab_size = 60
[inputs.image]
type = "regions"
features = "{folder}/features.h5"
[inputs.caption]
type = "text"
[generator]
type = "masked"
max_tokens = 6
[training]
batch_size = 4
epochs = 2
checkpoint_every = 1
[steps.both]
inputs = ["image", "caption"]
train = ["image", "backbone"]
[data]
type = "jsonl"
folder = "{folder}"
[data.files]
train = "rows.jsonl"
val = "rows.jsonl"
test = "rows.jsonl"
[metrics.captioneval]
type = "captioneval"
meteor = false
"""
STEP = Path("toy/default/seed-0/steps/both")


def surfaces() -> list[Surface]:
    return [
        # finite numbers of a file without a checksum may overflow in the model
        Surface("weights", _prepare, _spoil_weights, _load, _check_weights, named="weights|whose score is nan"),
        Surface("pretrained", _prepare_pretrained, _spoil_pretrained, _pretrained, _check_pretrained, named="weights"),
        Surface("run_folder", _prepare, _spoil_kept, _load, _check_kept, lines=20, named=RUN_NAMED),
        Surface(
            "results",
            _prepare,
            _spoil_results,
            _read_results,
            _check_results,
            named=r"\.json|no step (with scores )?is finished",
            starts=True,
        ),
        Surface(
            "checkpoint",
            _prepare_stopped,
            _spoil_checkpoint,
            _go_on,
            _check_finished,
            lines=20,
            named=r"\.json|\.safetensors",
            starts=True,  # Java, for the tokenizer of the metrics
        ),
    ]


def runs() -> Path:
    """A folder with a finished run and a stopped one, beside the files that they read."""
    return Path(_make_run().name)


@functools.cache
def _make_run() -> tempfile.TemporaryDirectory:
    """Create the runs once per process, and delete them at its exit (a child exits without this)."""
    from mmgen.features.writer import StoreWriter
    from mmgen.parts import Record
    from mmgen.recipe.load import load
    from mmgen.registry import installed
    from mmgen.runs.run import run

    holder = tempfile.TemporaryDirectory(prefix="mmgen-fuzz-run-")
    base = Path(holder.name)
    draw = np.random.default_rng(0)
    with StoreWriter(base / "features.h5", {"extractor": "toy"}) as writer:
        for key in ("a", "b", "c"):
            corners = draw.random((2, 2)) / 2
            writer.add(Record(key, draw.random((2, 5)), np.concatenate([corners, corners + 0.3], 1)))
        writer.finish()
    rows = [
        {"id": key, "image": key, "caption": "a red dog", "questions": ["what is it", "why the dog"]}
        for key in ("a", "b", "c")
    ]
    (base / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (base / "toy.toml").write_text(RECIPE.format(folder=base), encoding="utf-8")
    recipe = load(base / "toy.toml", installed())[0]
    with _quietly():
        run(recipe.model_copy(update={"output": str(base / "runs")}))
        with contextlib.suppress(KeyboardInterrupt):
            run(recipe.model_copy(update={"output": str(base / "stopped")}), progress=_stopping())
    return holder


@contextlib.contextmanager
def _quietly():
    """Hide progress bars and hints of libraries."""
    from transformers.utils import logging as hf

    hf.set_verbosity(logging.CRITICAL)
    hf.disable_progress_bar()
    logging.getLogger("mmgen").setLevel(logging.ERROR)
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):  # noqa: PTH123
        yield


def _stopping() -> Any:
    """A progress that stops a run after its third update."""
    from mmgen.progress import Progress

    class Stopping(Progress):
        @contextlib.contextmanager
        def task(self, label, total, unit="", done=0):
            calls = iter(range(3))

            def advance(steps=1, text=""):
                if "training" in label and next(calls, None) is None:
                    raise KeyboardInterrupt

            yield advance

    return Stopping()


def _prepare(folder: Path) -> Any:
    shutil.copytree(runs() / "runs", folder, dirs_exist_ok=True)
    with _quietly():
        return {"text": _wrote(_load(folder / STEP / "weights.safetensors", {}))}


def _prepare_stopped(folder: Path) -> Any:
    shutil.copytree(runs() / "stopped", folder, dirs_exist_ok=True)
    files = [path for path in (folder / STEP).glob("*.safetensors") if path.name != "best.safetensors"]
    assert files and not (folder / STEP / "weights.safetensors").exists(), "no checkpoint to damage"
    return {"checkpoint": files[0].relative_to(folder)}


def _root(path: Path) -> Path:
    """The run's folder, from any file inside it."""
    return next(parent for parent in path.parents if parent.name == "seed-0")


def _load(path: Path, _) -> Any:
    """Load the run as `mmgen generate` does, and generate one text."""
    from mmgen.inference.load import load_run

    with _quietly():
        loaded = load_run(_root(path))
        return loaded, _ask(loaded)


def _ask(loaded: Any) -> str:
    from mmgen.parts import Record
    from mmgen.tensors import Example

    record = Record("x", np.full((2, 5), 0.5, np.float32), np.array([[0, 0, 1, 1], [0, 0, 0.5, 0.5]], np.float32))
    return loaded.generate([Example("x", {"image": record, "caption": "a red dog"})])[0][0].text


def _wrote(content: Any) -> str:
    return content[1]


# --- weights ---


def _unseal(header: dict) -> None:
    """Metadata as in another program's file: other keys, no checksum."""
    about = json.loads(header["__metadata__"].pop("mmgen"))
    del about["crc32"]
    header["__metadata__"] = about


def _spoil_weights(draw: Random, folder: Path, _) -> Path:
    path = folder / STEP / "weights.safetensors"
    data = path.read_bytes()
    if draw.random() < 0.5:
        path.write_bytes(mutations.bytes_(draw, data))
        return path
    length = int.from_bytes(data[:8], "little")
    about = json.loads(data[8 : 8 + length])
    if draw.random() < 0.7:
        _unseal(about)
        if draw.random() < 0.5:
            numbers = bytearray(data[8 + length :])
            numbers[draw.randrange(len(numbers))] ^= 1 << draw.randrange(8)
            text = json.dumps(about).encode()
            path.write_bytes(struct.pack("<Q", len(text)) + text + numbers)
            return path
    header = mutations.json_(draw, about, ["F16", "BF16", "I64", "F8_E4M3", [0, 10**12], [10**6, 10**6], 2**64]).encode(
        "utf-8", "surrogatepass"
    )
    claimed = draw.choice((len(header), len(header), len(header), 0, 2**63, len(header) + 8))
    path.write_bytes(struct.pack("<Q", claimed) + header + data[8 + length :])
    return path


def _check_weights(path: Path, content: Any, _) -> None:
    """Compare with a safetensors file read by hand: a length, a JSON header, then numbers."""
    from mmgen.storage.weights import state

    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, numbers = json.loads(data[8 : 8 + length]), data[8 + length :]
    kinds = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I64": "<i8", "I32": "<i4", "BOOL": "?", "U8": "u1"}
    for name, tensor in state(content[0].model).items():
        about = header[name]
        first, last = about["data_offsets"]
        if about["dtype"] in kinds:
            stored = np.frombuffer(numbers[first:last], kinds[about["dtype"]]).reshape(about["shape"])
            assert np.array_equal(
                tensor.detach().numpy(), stored.astype(tensor.detach().numpy().dtype), equal_nan=True
            ), f"{name} is another"
        assert np.isfinite(tensor.detach().numpy()).all(), f"{name} is not finite but was accepted"


# --- what a run keeps ---


def _spoil_kept(draw: Random, folder: Path, _) -> Path:
    root = folder / STEP.parent.parent
    path = root / draw.choice(
        (
            "recipe.json",
            "recipe.json",
            "inputs.json",
            "data.json",
            "backbone/config.json",
            "backbone/tokenizer.json",
            "backbone/tokenizer_config.json",
        )
    )
    _spoil_json(draw, path)
    return path


def _spoil_json(draw: Random, path: Path) -> None:
    if draw.random() < 0.3:
        path.write_bytes(mutations.bytes_(draw, path.read_bytes()))
    elif draw.random() < 0.1:
        path.unlink()
        draw.choice((lambda: None, path.mkdir, lambda: path.symlink_to(path.name)))()
    else:
        mutations.write(path, mutations.json_(draw, json.loads(path.read_text(encoding="utf-8"))))


def _check_kept(path: Path, content: Any, prepared: Any) -> None:
    loaded, text = content
    if path.name == "recipe.json":
        said = json.loads(path.read_text(encoding="utf-8"))
        said.pop(STARTED, None)
        image = said["inputs"]["image"]
        said["inputs"]["image"] = {
            name: value for name, value in image.items() if value is not None
        }  # inputs.json says
        for table in said["inputs"].values():
            if isinstance(table, dict) and table.get("fields") == []:
                del table["fields"]  # none: the field with the input's name
        _same(said, loaded.recipe.model_dump(mode="json"), ())
    if path.name == "inputs.json":
        saved = json.loads(path.read_text(encoding="utf-8"))["image"]
        assert saved["width"] == loaded.model.embedders["image"].width
        assert saved["fingerprint"] == loaded.model.embedders["image"].fingerprint
    if path.name == "tokenizer.json":
        said = json.loads(path.read_text(encoding="utf-8"))
        added = {token["content"] for token in said.get("added_tokens") or ()}
        words, vocabulary = loaded.model.backbone.tokenizer.get_vocab(), said["model"]["vocab"]
        assert words.items() >= vocabulary.items(), "the vocabulary is another"
        assert words.keys() == vocabulary.keys() | added, "the vocabulary has other words"  # tokenizers numbers them
    if path.name == "data.json":  # texts do not depend on it
        assert text == prepared["text"], f"{text!r} instead of {prepared['text']!r}"


# --- an encoder's folder that a recipe names ---

CONFIG = [0, -1, 1, 3, 10**9, 10**30, 1e9, "x", "zelu", "roberta", "float16", [], {}, None, True]


def _prepare_pretrained(folder: Path) -> Any:
    from transformers import AutoConfig, AutoModelForMaskedLM

    shutil.copytree(runs() / "runs" / STEP.parent.parent / "backbone", folder / "encoder")
    with _quietly():
        sizes = AutoConfig.from_pretrained(folder / "encoder")
        AutoModelForMaskedLM.from_config(sizes).save_pretrained(folder / "encoder")
    return json.loads((folder / "encoder/config.json").read_text())


def _spoil_pretrained(draw: Random, folder: Path, config: Any) -> Path:
    """Usually change the value of one field of the config."""
    path = folder / "encoder" / draw.choice(("config.json",) * 8 + ("tokenizer.json", "tokenizer_config.json"))
    if path.name == "config.json" and draw.random() < 0.8:
        path.write_text(json.dumps({**config, draw.choice(list(config)): draw.choice(CONFIG)}))
    else:
        _spoil_json(draw, path)
    return path


def _pretrained(path: Path, _) -> Any:
    from mmgen_encoders import Bert

    with _quietly():
        backbone = Bert(weights=str(path.parent)).build()
        return backbone, backbone.encode_text("a red dog")


def _check_pretrained(path: Path, content: Any, _) -> None:
    (backbone, ids), said = content, json.loads((path.parent / "config.json").read_text(encoding="utf-8"))
    assert len(ids) and len(backbone.model.bert.encoder.layer) == said["num_hidden_layers"]
    words = backbone.model.get_input_embeddings().weight
    assert words.shape == (said["vocab_size"], said["hidden_size"]), f"{words.shape} where the file says {said}"


# --- what steps left ---


def _spoil_results(draw: Random, folder: Path, _) -> Path:
    root = folder / STEP.parent.parent
    path = root / draw.choice(
        (
            "steps/both/generations.jsonl",
            "steps/both/generations.jsonl",
            "steps/both/scores.json",
            "steps/both/log.jsonl",
            "times.json",
            "environment.json",
            "data.json",
        )
    )
    if path.suffix != ".jsonl" or draw.random() < 0.3:
        _spoil_json(draw, path) if path.suffix != ".jsonl" else path.write_bytes(
            mutations.bytes_(draw, path.read_bytes())
        )
        return path
    rows = path.read_text(encoding="utf-8").splitlines()
    place = draw.randrange(len(rows))
    rows[place] = mutations.json_(draw, json.loads(rows[place]))
    draw.choice((lambda: None, lambda: rows.pop(), lambda: rows.append(rows[0]), lambda: draw.shuffle(rows)))()
    mutations.write(path, "\n".join(rows) + "\n")
    return path


def _read_results(path: Path, _) -> Any:
    """Write the page with all its contents, and run `mmgen run` on the finished folder."""
    from mmgen.evaluation import score
    from mmgen.progress import Progress
    from mmgen.runs.run import report_on
    from mmgen.storage import generations

    folder = _root(path)
    with _quietly():
        page = report_on(folder, Progress(), 2)
    return generations.read(folder / "steps/both"), score.read(folder / "steps/both"), page.read_text(encoding="utf-8")


def _check_results(path: Path, content: Any, _) -> None:
    written, scores, page = content
    step = _root(path) / "steps/both"
    said = [
        json.loads(line)
        for line in (step / "generations.jsonl").read_text(encoding="utf-8").split("\n")
        if line.strip()
    ]
    assert [[text.text for text in texts] for texts in written] == [[text["text"] for text in texts] for texts in said]
    assert [[text.id for text in texts] for texts in written] == [[text["id"] for text in texts] for texts in said]
    assert dict(scores.values) == json.loads((step / "scores.json").read_text(encoding="utf-8"))["values"]
    assert "<script>alert" not in page, "a script that a file brought with it"


# --- a checkpoint ---


def _spoil_checkpoint(draw: Random, folder: Path, prepared: Any) -> Path:
    path = folder / (prepared["checkpoint"] if draw.random() < 0.7 else STEP / "log.jsonl")
    if path.suffix == ".safetensors" and draw.random() < 0.5:
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        _unseal(header)
        if draw.random() < 0.5:
            about = header["__metadata__"]
            name = draw.choice(list(about))
            about[name] = mutations.json_(draw, json.loads(about[name])) if about[name].startswith("{") else "x"
            text = json.dumps(header)
        else:
            text = mutations.json_(draw, header)
        packed = text.encode("utf-8", "surrogatepass")
        path.write_bytes(struct.pack("<Q", len(packed)) + packed + data[8 + length :])
    else:
        path.write_bytes(mutations.bytes_(draw, path.read_bytes()))
    return path


def _go_on(path: Path, _) -> Any:
    from mmgen.recipe.load import load
    from mmgen.registry import installed
    from mmgen.runs.run import run

    recipe = load(runs() / "toy.toml", installed())[0]
    output = _root(path).parents[2]
    with _quietly():
        return run(recipe.model_copy(update={"output": str(output)}))


def _check_finished(path: Path, content: Any, _) -> None:
    """The weights are those of the run that was never stopped, if the damaged checkpoint was used or not."""
    import torch
    from safetensors.torch import load_file

    assert content.finished("both"), "no scores"
    resumed, expected = (
        load_file(folder / "weights.safetensors") for folder in (content.step("both"), runs() / "runs" / STEP)
    )
    assert resumed.keys() == expected.keys(), "weights of other names"
    changes = [name for name, tensor in expected.items() if not torch.equal(tensor, resumed[name])]
    assert not changes, f"other weights than without a stop: {changes[:3]}"
    log = (content.step("both") / "log.jsonl").read_text(encoding="utf-8").splitlines()
    updates = [json.loads(line)["update"] for line in log]
    assert updates == sorted(set(updates)), f"the log's updates are {updates}"
