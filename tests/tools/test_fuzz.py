"""Bad input: a short run of the fuzzer on every surface, and the cases of earlier findings by name."""

import contextlib
import gzip
import json
import logging
import os
import random
import re
import shutil
import socket
import subprocess
import tempfile
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from mmgen_regions import LxmertH5, NpzFolder
from safetensors.torch import load_file, save_file

from mmgen import scoring
from mmgen.cli import main
from mmgen.errors import MmgenError
from mmgen.features.embedder import measure
from mmgen.features.extract import extract
from mmgen.features.journal import Journal
from mmgen.features.store import FeatureStore
from mmgen.features.writer import StoreWriter
from mmgen.files import read_json, write_json
from mmgen.inference.load import load_run
from mmgen.inference.query import read_sources
from mmgen.parts import Record
from mmgen.progress import Progress
from mmgen.reading.text import read_text
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.report import curves
from mmgen.runs.run import report_on
from mmgen.storage import generations
from mmgen.storage.weights import read_tensors, save_weights
from tools.fuzz import Bench, all_surfaces, fuzz, harness, judge
from tools.fuzz.__main__ import main as fuzz_command
from tools.fuzz.folder import CaseFolder
from tools.fuzz.folders import STEP, runs

pytestmark = pytest.mark.slow  # every test starts commands or processes

SLOW = {
    "lxmert_h5": 10,
    "old_store": 10,
    "results": 2,
    "checkpoint": 2,
    "run_folder": 8,
    "weights": 6,
    "pretrained": 8,
    "commands": 12,
    "export": 6,
    "judged": 10,
    "service": 20,
    "conditions": 15,
}  # cases of surfaces that load models, or walk through HDF5 files first; `python -m tools.fuzz` has no such bounds


@pytest.fixture(autouse=True)
def level_of_messages():
    """Surfaces silence mmgen's messages in this process; later tests of the same worker expect them."""
    level = logging.getLogger("mmgen").level
    yield
    logging.getLogger("mmgen").setLevel(level)


def test_an_unknown_surface_is_reported(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["fuzz", "--surface", "recip"])
    with pytest.raises(SystemExit):
        fuzz_command()
    assert "--surface recip: unknown surface; did you mean 'recipe'?; choose from: recipe, " in capsys.readouterr().err


@pytest.mark.parametrize("name", all_surfaces())
def test_spoilt_files_are_refused_by_name_or_read_rightly(name, pytestconfig):
    cases = SLOW.get(name, 30) // (1 if pytestconfig.getoption("exhaustive") else 2)
    tally = fuzz(all_surfaces()[name], cases, seed=21, seconds=60)
    assert not tally.findings, tally.findings[0]
    assert tally.counts.total() == cases


def test_a_case_folder_is_whole_again_whatever_a_case_did(tmp_path):
    source = tmp_path / "whole"
    (source / "deep").mkdir(parents=True)
    (source / "a").write_bytes(b"one")
    (source / "deep/b").write_bytes(b"two")
    (source / "link").symlink_to("a")
    folder = CaseFolder(source, tmp_path / "case")

    def content():
        return {
            str(path.relative_to(folder.path)): path.readlink()
            if path.is_symlink()
            else path.is_file() and path.read_bytes()
            for path in folder.path.rglob("*")
        }

    folder.restore()
    before, number = content(), (folder.path / "deep/b").stat().st_ino
    assert before == {"a": b"one", "deep": False, "deep/b": b"two", "link": Path("a")}
    acts = [
        lambda path: (path / "a").write_bytes(b"eno"),  # as many bytes, at once
        lambda path: (path / "a").rename(path / "c"),
        lambda path: (path / "a").unlink() or (path / "a").mkdir(),
        lambda path: (path / "a").unlink() or (path / "a").symlink_to("deep/b"),
        lambda path: (path / "link").unlink() or (path / "link").symlink_to("b"),
        lambda path: (path / "deep/new/one").mkdir(parents=True),
        lambda path: (path / "a").chmod(0o444),
    ]
    for act in acts:
        act(folder.path)
        folder.restore()
        assert content() == before and os.access(folder.path / "a", os.W_OK)
    assert (folder.path / "deep/b").stat().st_ino == number  # what no case changed was not written again
    shutil.rmtree(folder.path / "deep")
    folder.restore()
    assert content() == before


def test_the_fuzzer_finds_programs_and_files_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # a checkout may be in the folder of temporary files
    outside = Path(__file__).with_name("never written")
    acts = {
        "subprocess.Popen": lambda: subprocess.run(["true"], check=True),
        "os.system": lambda: os.system("true"),
        f"opened '{outside}' for writing": lambda: os.close(os.open(outside, os.O_WRONLY)),
        "os.mkdir": lambda: (outside / "below").mkdir(),
        "socket.getaddrinfo": lambda: socket.getaddrinfo("127.0.0.1", 1),
    }
    for event, act in acts.items():
        surface = replace(
            all_surfaces()["tsv"],
            spoil=lambda draw, folder, _: folder / "x",
            read=lambda path, _, act=act: suppressed(act),
        )
        (finding,) = fuzz(surface, 1).findings
        assert finding.outcome.kind == "does what reading must not do" and event in finding.outcome.message
    inside = replace(surface, read=lambda path, _: path.write_bytes(b"x"), check=lambda *_: None)
    assert fuzz(inside, 2).counts["read"] == 2


def suppressed(act):
    with contextlib.suppress(OSError):
        act()


def test_a_case_is_a_function_of_its_number(tmp_path):
    surface = all_surfaces()["answer_shards"]
    together = Bench(surface, tmp_path / "a")
    alone = Bench(surface, tmp_path / "b")
    contents = [read_all(together, number) for number in range(12)]
    assert [read_all(alone, number) for number in (11, 3)] == [contents[11], contents[3]]
    assert contents[3] != contents[11]


def read_all(bench, number):
    bench.spoil(number)
    return {path.name: path.read_bytes() for path in bench.folder.path.iterdir()}


def test_the_fuzzer_tells_what_is_wrong_with_a_message():
    path = Path("/x/file.json")
    assert judge("/x/file.json:3: no text", path) == ""
    assert judge("/x/file.json: no text", path, placed=r":\d+") == "message without a place"
    assert judge("no text", path) == "message that does not name the file"
    assert judge("/x/file.json: a\nb", path) == "message of 2 lines"
    assert judge("/x/file.json: \x1b[2J", path) == "message with control characters"
    assert judge("/x/file.json: " + "x" * 2000, path) == "message without end"


def test_the_fuzzer_finds_tracebacks_wrong_results_crashes_and_hangs():
    acts = {
        lambda: 1 / 0: 60.0,
        lambda: None: 60.0,
        lambda: os._exit(3): 60.0,
        lambda: time.sleep(600): 0.1,
        lambda: sum(iter(int, 1)): 0.1,
    }
    base = replace(
        all_surfaces()["tsv"],
        spoil=lambda draw, folder, _: folder / "x",
        check=lambda *_: (_ for _ in ()).throw(AssertionError("other")),
    )
    kinds = [
        fuzz(replace(base, read=lambda path, _, act=act: act()), 1, seconds=seconds).findings[0].outcome.kind
        for act, seconds in acts.items()
    ]
    assert kinds == [
        "traceback: ZeroDivisionError",
        "wrong result",
        "crash",
        "hang of over 1 s",
        "hang of over 0.1 s of processor time",
    ]


def test_a_case_that_waits_for_a_processor_does_not_hang(monkeypatch):
    """The limit is one of processor time. Counts may be read while the child writes them, as zeros."""
    counts = harness._Child.counts
    unpacked = iter([(0,) * len(counts.unpack(bytes(counts.size)))] * 2)
    torn = SimpleNamespace(
        size=counts.size,
        pack_into=counts.pack_into,
        unpack_from=lambda shared: next(unpacked, None) or counts.unpack_from(shared),
    )
    monkeypatch.setattr(harness._Child, "counts", torn)
    base = replace(all_surfaces()["tsv"], spoil=lambda draw, folder, _: folder / "x", check=lambda *_: None)
    assert fuzz(replace(base, read=lambda path, _: time.sleep(0.3)), 1, seconds=0.1).counts["read"] == 1


# --- what it found
# -----------------------------------------------------------------------------------------------------


def refused(act, *arguments, **more) -> str:
    with pytest.raises(MmgenError) as error:
        act(*arguments, **more)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture
def root(tmp_path) -> Path:
    """A copy of a small run's folder."""
    shutil.copytree(runs() / "runs", tmp_path / "runs")
    return tmp_path / "runs" / STEP.parent.parent


# recipes


@pytest.mark.parametrize("setting", ["inputs=3", "steps=3", "inputs.image=3", "steps.both=3", "metrics=3"])
def test_a_value_instead_of_a_table_is_reported_once(setting):
    message = refused(load, runs() / "toy.toml", installed(), sets=(setting,))
    assert message.startswith(f"--set {setting}: {setting.partition('=')[0]}: must be a table")


def test_a_setting_of_several_lines_is_not_several_settings():
    with pytest.raises(MmgenError, match="write a.b=value"):
        load(runs() / "toy.toml", installed(), sets=("seed=1\noutput='x'",))


def test_a_parent_that_cannot_be_read_is_reported_with_the_line_that_names_it(tmp_path):
    (tmp_path / "a.toml").write_text(f'name = "a"\nextends = "{"x" * 300}.toml"\n')
    assert refused(load, tmp_path / "a.toml", installed()).startswith(f"{tmp_path}/a.toml:2: extends: ")
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    assert "cannot be read: " in refused(load, tmp_path / "loop.toml", installed())


def test_steps_may_follow_one_another_for_long(tmp_path):
    steps = "".join(
        f'[steps.s{n}]\ninputs = ["caption"]\ntrain = ["backbone"]\nstart = "s{n - 1}"\n' for n in range(1, 1100)
    )
    text = (
        (runs() / "toy.toml")
        .read_text()
        .replace("[data]", '[steps.s0]\ninputs = ["caption"]\ntrain = ["backbone"]\n' + steps + "[data]", 1)
    )
    (tmp_path / "long.toml").write_text(text)
    assert len(load(tmp_path / "long.toml", installed())[0].chain("s1099")) == 1100


# question files, predictions, requests


def test_a_small_file_takes_little_memory(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    tracemalloc.start()
    read_text(tmp_path / "a.json")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gzip.compress(b"{}", mtime=0)[:10] + b"\xff" * 20, "cannot be unpacked (Error -3 while decompressing data"),
        (b"[" * 100_000, ":1: nested too deeply"),
        (
            b'{"image_id": 1, "\\n": 2}',
            ", entry 1: no text; give one of questions, predictions, texts, captions, text, prediction, question, "
            "caption; the keys are image_id, '\\n'",
        ),
    ],
)
def test_predictions_that_are_none(tmp_path, data, message):
    (tmp_path / "p.json").write_bytes(data)
    assert message in refused(scoring.read_predictions, tmp_path / "p.json")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"image": "a.jpg", "id": [1]}', '"id" must be a string, not [1]'),
        ("3", "not a JSON object"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_requests_of_odd_types(tmp_path, line, expected):
    (tmp_path / "r.jsonl").write_text('{"caption": "a"}\n' + line)
    message = read_sources([tmp_path / "r.jsonl"])[1].problem
    assert message.startswith(f"{tmp_path}/r.jsonl:2: invalid line (") and expected in message


def test_a_line_separator_inside_a_text_ends_no_line(tmp_path):
    row = {"id": "a", "text": "one\u2028two\x85three", "tokens": [1], "score": -1.0}
    (tmp_path / "generations.jsonl").write_text(json.dumps([row], ensure_ascii=False) + "\n", encoding="utf-8")
    assert generations.read(tmp_path)[0][0].text == row["text"]
    assert scoring.read_predictions(tmp_path / "generations.jsonl") == {"a": [row["text"]]}


# features


def store(path: Path, **spoilt) -> Path:
    with StoreWriter(path, {"extractor": "test"}, "float32") as writer:
        for number, key in enumerate("ab"):
            writer.add(
                Record(
                    key, np.ones((2, 4), np.float32) + number, np.array([[0, 0, 1, 1]] * 2, np.float32), ("cat", "dog")
                )
            )
        writer.finish()
    with h5py.File(path, "r+") as file:
        for name, value in spoilt.items():
            if name == "fingerprint":
                file.attrs[name] = value
            else:
                file[name][0] = value
    return path


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        ({"fingerprint": np.zeros((2, 2))}, "not a feature store, or damaged: 'fingerprint' must be a JSON object"),
        ({"keys": b"\xff"}, "not a feature store, or damaged: 'keys' is not valid UTF-8"),
        ({"keys": b"b"}, "not a feature store, or damaged: duplicate key 'b'"),
    ],
)
def test_stores_that_are_refused_when_opened(tmp_path, spoilt, message):
    assert refused(FeatureStore, store(tmp_path / "s.h5", **spoilt)).startswith(f"{tmp_path}/s.h5: {message}")


def test_a_label_without_a_name_and_features_that_are_not_finite(tmp_path):
    path = store(tmp_path / "s.h5", labels=7)
    assert (
        refused(FeatureStore(path).read, "a")
        == f"{path}: image 'a' has label 7, but there are only 2 label names; the file is damaged"
    )
    path = store(tmp_path / "n.h5", features=np.nan)
    assert (
        refused(measure, FeatureStore(path), None)
        == f"{path}: features are not finite (NaN or infinite); create them again"
    )


def test_a_journal_that_does_not_say_what_it_is_for(tmp_path):
    (tmp_path / "s.h5.partial").write_bytes(b"mmgen journal 1 [3]\n")
    message = f"{tmp_path}/s.h5.partial:1: damaged header; delete the file and start over"
    assert refused(Journal, tmp_path / "s.h5.partial", {}) == message
    (tmp_path / "s.h5.partial").write_bytes(b"mmgen journal 1 {}\n")
    assert "contains features with a different fingerprint" in refused(
        StoreWriter, tmp_path / "s.h5", {"extractor": "test"}
    )


@pytest.mark.parametrize(
    ("datasets", "expected"),
    [
        (
            {"image_features": np.ones((2, 3, 4)), "spatial_features": np.ones((2, 2, 6))},
            "spatial_features must be (2, 3, 6) for these image_features",
        ),
        (
            {"image_features": np.ones((6, 4)), "pos_boxes": np.ones((2, 3), int)},
            "pos_boxes must be whole numbers, (images, 2)",
        ),
        ({"image_features": np.ones((2, 3, 4), int)}, "image_features must be numbers"),
        ({"image_features": np.full((2, 3, 4), np.nan)}, "no image could be processed"),
        ({"image_features": np.ones((0, 3, 4))}, "its row in the index is 0, but the file has 0 rows"),
    ],
)
def test_lxmert_files_that_do_not_fit_together(tmp_path, datasets, expected):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        for name, values in datasets.items():
            file[name] = values
    (tmp_path / "index.json").write_text('{"1": 0, "2": 1}')
    message = refused(extract, LxmertH5(index=tmp_path / "index.json").build(), tmp_path / "f.h5", tmp_path / "s.h5")
    assert f"{tmp_path}/f.h5: " in message and expected in message


def test_a_key_of_several_lines_is_reported_in_one(tmp_path):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["image_features"] = np.ones((2, 3, 4), np.float32)
        file["spatial_features"] = np.stack(
            [np.tile(np.float32(box), (3, 1)) for box in ([0.5, 0, 0.1, 1, 0, 0], [0, 0, 1, 1, 1, 1])]
        )
    (tmp_path / "index.json").write_text('{"\\n": 0, "2": 1}')
    done = extract(LxmertH5(index=tmp_path / "index.json").build(), tmp_path / "f.h5", tmp_path / "s.h5")
    assert done.broken == (
        ("\n", f"{tmp_path}/f.h5: image '\\n': a box has x0 > x1 or y0 > y1; boxes must be x0, y0, x1, y1"),
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones((2, 3), complex), "must be real numbers, but their dtype is complex128"),
        (np.array([["1", "2"]]), "must be real numbers, but their dtype is <U1"),
        (np.ones((2, 3), bool), "must be real numbers, but their dtype is bool"),
    ],
)
def test_arrays_that_hold_no_features(tmp_path, values, message):
    (tmp_path / "a").mkdir()
    np.savez(tmp_path / "a/1.npz", x=values)
    assert message in refused(extract, NpzFolder().build(), tmp_path / "a", tmp_path / "s.h5")


def test_an_array_whose_header_is_no_header_costs_its_image_only(tmp_path):
    (tmp_path / "a").mkdir()
    for name in "12":
        np.save(tmp_path / f"a/{name}.npy", np.ones((2, 3)))
    data = (tmp_path / "a/1.npy").read_bytes()
    (tmp_path / "a/1.npy").write_bytes(data.replace(b"(2, 3)", b"(2, 3 "))
    done = extract(NpzFolder().build(), tmp_path / "a", tmp_path / "s.h5")
    assert done.written == 1 and [key for key, _ in done.broken] == ["1"]


# run folders


def resized(text: str, **sizes: int) -> str:
    """A config whose sizes are possible one by one, but not together."""
    return json.dumps({**json.loads(text), **sizes})


@pytest.mark.parametrize(
    ("file", "change", "expected"),
    [
        ("backbone/config.json", lambda text: "{", "backbone/config.json: damaged, or not usable by this encoder"),
        (
            "backbone/config.json",
            lambda text: text.replace('"bert"', '"roberta"'),
            "the encoder is of type 'roberta', but the recipe's backbone is 'bert'",
        ),
        (
            "backbone/config.json",
            lambda text: text.replace('"num_hidden_layers": 1', '"num_hidden_layers": 1000000'),
            "num_hidden_layers must be a whole number from 1 to 1000, not 1000000",
        ),
        (
            "backbone/config.json",
            lambda text: resized(text, hidden_size=90_000, intermediate_size=900_000, num_hidden_layers=40),
            "its weights need ",
        ),
        (
            "backbone/tokenizer.json",
            lambda text: "[]",
            "backbone/tokenizer.json: damaged, or not usable by this encoder",
        ),
        (
            "backbone/tokenizer_config.json",
            lambda text: re.sub(r'"mask_token": "\[MASK\]",', "", text),
            "tokenizer_config.json: damaged, or not usable by this encoder: the tokenizer has no mask token",
        ),
        ("inputs.json", lambda text: text.replace('"width": 5', '"width": -1'), "inputs.json: damaged: image.width: "),
        ("inputs.json", lambda text: text.replace('"width": 5', '"wide": 5'), "inputs.json: damaged: image.wide: "),
        ("inputs.json", lambda text: '{"image": 3}', "inputs.json: damaged: 'image' is 3"),
        ("recipe.json", lambda text: "[" * 100_000, "recipe.json: damaged: nested too deeply"),
    ],
)
def test_damaged_files_of_a_run_are_reported_by_name(root, file, change, expected):
    path = root / file
    text = path.read_text()
    path.write_text(change(text))
    assert path.read_text() != text
    message = refused(load_run, root)
    assert expected in message and path.parent.name in message


def test_one_bit_of_the_weights_is_noticed(root):
    path = root / "steps/both/weights.safetensors"
    data = bytearray(path.read_bytes())
    data[-random.Random(0).randrange(4, 400)] ^= 1
    path.write_bytes(data)
    assert (
        refused(load_run, root)
        == f"{path}: damaged: checksum mismatch; restore the file from a copy, or delete it and run again"
    )


def test_weights_of_others_have_no_checksum_and_must_be_finite(root):
    path = root / "steps/both/weights.safetensors"
    tensors = load_file(path)
    save_file(tensors, path)
    load_run(root)
    name = next(iter(tensors))
    tensors[name].view(-1)[0] = float("nan")
    save_file(tensors, path)
    assert refused(load_run, root) == f"{path}: {name} is not finite (NaN or infinite); the file is damaged"
    assert name in read_tensors(path)[0]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        (
            "steps/both/generations.jsonl",
            b'[{"id": "a", "text": "x", "tokens": ["1"], "score": -1}]\n',
            'generations.jsonl:1: damaged: 0.tokens.0: must be a whole number, not "1";',
        ),
        (
            "steps/both/generations.jsonl",
            b"",
            "generations.jsonl: damaged: the file is empty; delete the file and run again",
        ),
        (
            "times.json",
            b"[]",
            "times.json: damaged: expected a JSON object; delete the file, which only records how long steps took",
        ),
        ("steps/both/generations.jsonl", b"[]\n", "generations.jsonl:1: damaged: the line has no text"),
        ("steps/both/generations.jsonl", b"\xff\n", "generations.jsonl: damaged: 'utf-8' codec can't decode"),
        (
            "steps/both/scores.json",
            b'{"values": {"BLEU-1": "x"}, "per_example": {}, "notes": []}',
            "scores.json: damaged: scores must be numbers",
        ),
        (
            "steps/both/scores.json",
            b'{"values": [], "per_example": {}, "notes": []}',
            "scores.json: damaged: 'values' is []",
        ),
        (
            "steps/both/log.jsonl",
            b'{"epoch": "x", "loss": 1}\n{"epoch": 0, "loss": 1}\n',
            "log.jsonl:1: damaged: expected numbers for epoch and loss",
        ),
        ("times.json", b'{"both": "1"}', "times.json: damaged: 'both' is \"1\""),
        ("environment.json", b"[]", "environment.json: damaged: expected a JSON object"),
        ("data.json", b'{"fingerprint": 3}', "data.json: damaged: 'fingerprint' is 3"),
    ],
)
def test_damaged_files_of_steps_are_reported_by_name(root, file, text, message):
    (root / file).write_bytes(text)
    assert message in refused(report_on, root, Progress(), 1)


def test_weights_of_another_step_are_reported(root):
    path = root / "steps/both/weights.safetensors"
    save_weights(load_run(root).model, path, step="caption")
    assert refused(load_run, root) == (
        f"{path}: contains the weights of step 'caption', not of 'both'; restore the file from a copy, or delete the "
        "file and run again"
    )


def test_a_log_that_a_kill_has_cut_is_drawn_without_its_last_line(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"epoch": 0, "loss": 1.5}\n{"epoch": 1, "lo')
    assert curves.read(tmp_path / "log.jsonl").learning == [(0, 1.5)]


def test_half_a_character_is_written_as_json_spells_it(tmp_path):
    write_json(tmp_path / "a.json", {"text": "\ud800"})
    assert read_json(tmp_path / "a.json") == {"text": "\ud800"}


# commands


@pytest.mark.parametrize(
    "arguments",
    [
        ["features", "info", "x" * 300],
        ["features", "info", "."],
        ["check", "x" * 300],
        ["score", "x" * 300, "--references", "y"],
        ["init", "file"],
        ["init", "file/below"],
        ["generate", "run", "x" * 300],
        ["show", "loop"],
        ["compare", "loop"],
        ["score", "loop", "--references", "file", "--json", "file"],
    ],
    ids=lambda words: " ".join(words)[:30],
)
def test_paths_that_cannot_be_are_reported_in_one_line(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    with contextlib.redirect_stderr(None):
        result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
    assert result.output.count("\n") == 1 and result.output.startswith("error: ")
