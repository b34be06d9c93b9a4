"""No file can run code, be followed out of its folder, or fill the memory: pickles, foreign code, links, bombs,
paths, scripts."""

import ast
import contextlib
import gzip
import io
import json
import os
import pickle
import re
import shutil
import subprocess
import threading
import tomllib
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest
from kit import small_runs
from kit.pictures import png
from kit.refusals import copied_run, refusal
from mmgen_frcnn import command as frcnn
from mmgen_humaneval.answers import read as judged
from mmgen_probes import parses
from mmgen_regions import BottomUpTsv, LxmertH5, NpzFolder
from mmgen_tasks.pickles import read_pickle
from mmgen_vl.flickr30k_files import read_annotation
from PIL import Image

from mmgen import scoring
from mmgen.errors import DataError, RecipeError, RunError
from mmgen.features.extract import extract
from mmgen.features.images import FORMATS, SUFFIXES, open_image
from mmgen.features.picture_sources import folder_pictures
from mmgen.features.store import FeatureStore
from mmgen.features.writer import StoreWriter
from mmgen.files import read_json
from mmgen.inference.load import load_run
from mmgen.inference.query import read_sources
from mmgen.parts import Record
from mmgen.reading.text import read_text
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.report import curves
from mmgen.runs.run import run
from mmgen.storage import generations
from mmgen.storage.scored_examples import SavedExamples
from mmgen.storage.weights import read_tensors

pytestmark = pytest.mark.slow


ROOT = Path(__file__).resolve().parents[1]


CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


SOURCES = [path for folder in ("mmgen", "plugins", "examples") for path in sorted((ROOT / folder).rglob("*.py"))]


LOADERS = re.compile(
    r"(^|\.)(c?pickle|dill|cloudpickle|joblib|shelve|marshal|yaml|torch)\.(load|loads|Unpickler|open|unsafe_load|full_load)$"
)


RUNNERS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "os.system",
    "os.popen",
    "runpy.run_path",
    "torch.hub.load",
    "code.interact",
}


ROUND_TRIPS = (  # these load only pickles that the same process has written
    "mmgen/testing/embedder.py",  # a reader, as a loader's worker does
    "mmgen/data/example_copies.py",  # examples, in a temporary file without a name
)


class Bomb:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return (Path.touch, (self.mark,))


def calls(path: Path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), {word.arg: ast.unparse(word.value) for word in node.keywords if word.arg}


def complaint(name: str, words: dict[str, str]) -> str:
    """The error of a call, or ""."""
    last = name.rpartition(".")[2]
    if LOADERS.search(name) and (name != "torch.load" or words.get("weights_only") != "True"):
        return "loads pickles"
    if name in RUNNERS:
        return "runs what it is handed"
    if name in ("np.load", "numpy.load") and words.get("allow_pickle") != "False":
        return "np.load without allow_pickle=False"
    if words.get("trust_remote_code", "False") != "False":
        return "trusts remote code"
    if last == "from_pretrained" and name.startswith("Auto") and words.get("trust_remote_code") != "False":
        return "from_pretrained without trust_remote_code=False"
    if last == "from_pretrained" and "Model" in name and words.get("use_safetensors") != "True":
        return "weights that may be pickles"
    if last in ("get_state_dict", "load_state_dict_from_url") and words.get("weights_only") != "True":
        return "a library's pickles without weights_only=True"
    if words.get("shell", "False") != "False":
        return "a shell"
    return "expands a path" if last in ("expandvars", "expanduser") else ""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_call_that_could_run_a_file(path):
    complaints = [f"{name}: {why}" for name, words in calls(path) if (why := complaint(name, words))]
    assert not complaints or str(path.relative_to(ROOT)) in ROUND_TRIPS


def test_the_search_for_such_calls_finds_them():
    bad = [
        "torch.load(x)",
        "pickle.loads(x)",
        "np.load(x)",
        "np.load(x, allow_pickle=True)",
        "eval(x)",
        "subprocess.run(x, shell=True)",
        "os.path.expandvars(x)",
        "AutoModel.from_pretrained(x, trust_remote_code=False)",
        "AutoConfig.from_pretrained(x)",
        "f(x, trust_remote_code=True)",
    ]
    for text in bad:
        node = ast.parse(text).body[0].value
        assert complaint(ast.unparse(node.func), {word.arg: ast.unparse(word.value) for word in node.keywords}), text
    assert not complaint("np.load", {"allow_pickle": "False"}) and not complaint("model.eval", {})


def test_pages_escape_what_they_show_and_scripts_set_texts_only():
    for template in [*(ROOT / "mmgen").rglob("*.html")]:
        assert not re.search(r"\|\s*safe\b|autoescape", template.read_text(encoding="utf-8")), template
    for script in (ROOT / "mmgen").rglob("*.js"):
        matches = re.findall(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function",
            script.read_text(encoding="utf-8"),
        )
        assert not matches, f"{script}: {matches}"
    environments = [path for path in SOURCES if re.search(r"\bEnvironment\(", path.read_text(encoding="utf-8"))]
    assert environments and all("autoescape=True" in path.read_text(encoding="utf-8") for path in environments)


def test_pickles_in_arrays_and_indexes_are_not_opened(tmp_path):
    mark, folder = tmp_path / "mark", tmp_path / "arrays"
    folder.mkdir()
    np.save(folder / "1.npy", np.array([Bomb(mark)], object), allow_pickle=True)
    np.savez(folder / "2.npz", x=np.array([Bomb(mark)], object))
    message = refusal(extract, NpzFolder().build(), folder, tmp_path / "s.h5")
    assert "no image could be processed" in message
    (tmp_path / "index.pkl").write_bytes(pickle.dumps(Bomb(mark)))
    assert "a pickle could run any program" in refusal(LxmertH5(index=tmp_path / "index.pkl").build)
    (tmp_path / "index.json").write_bytes(pickle.dumps(Bomb(mark)))
    assert f"{tmp_path}/index.json: not UTF-8" in refusal(LxmertH5(index=tmp_path / "index.json").build)
    assert not mark.exists()
    pickle.loads(pickle.dumps(Bomb(mark)))
    assert mark.exists()  # the bomb is one


def test_a_pickle_for_weights_is_not_opened(tmp_path):
    (tmp_path / "weights.safetensors").write_bytes(pickle.dumps(Bomb(tmp_path / "mark")))
    assert f"{tmp_path}/weights.safetensors: damaged" in refusal(read_tensors, tmp_path / "weights.safetensors")
    assert not (tmp_path / "mark").exists()


@pytest.fixture
def saved(tmp_path) -> Path:
    return copied_run(tmp_path)


def store(path: Path) -> Path:
    with StoreWriter(path, {"extractor": "test"}, "float32") as writer:
        for key in ("a", "b"):
            writer.add(Record(key, np.ones((3, 4), np.float32), np.array([[0, 0, 1, 1]] * 3, np.float32)))
        writer.finish()
    return path


def lxmert(path: Path, **changes) -> Path:
    with h5py.File(path, "w") as file:
        file["image_features"] = np.ones((2, 3, 4), np.float32)
        file["spatial_features"] = np.zeros((2, 3, 6), np.float32)
    (path.parent / "index.json").write_text('{"1": 0, "2": 1}')
    return path


OUTSIDE = {
    "external link": (
        lambda file, name: file.__setitem__(name, h5py.ExternalLink("other.h5", f"/{name}")),
        "is a link, and links are not followed",
    ),
    "soft link": (
        lambda file, name: file.__setitem__(name, h5py.SoftLink("/elsewhere")),
        "is a link, and links are not followed",
    ),
    "external storage": (
        lambda file, name: file.create_dataset(name, (2, 3, 4), "f4", external=[("/etc/passwd", 0, 96)]),
        "is not stored in the file itself",
    ),
    "objects": (
        lambda file, name: file.create_dataset(name, (2,), h5py.vlen_dtype(np.float32)),
        "contains objects, not numbers",
    ),
    "references": (lambda file, name: file.create_dataset(name, (2,), h5py.ref_dtype), "contains objects, not numbers"),
    "a claim of 10^12 rows": (
        lambda file, name: file.create_dataset(name, (10**12, 4), "f4", chunks=(1024, 4)),
        "claims 16000000000000 bytes, but only 0 are stored",
    ),
    "a chunk to fill the memory": (
        lambda file, name: _filled(file, name),
        "has chunks of (268435456, 2), which are too large to unpack",
    ),
}


def _filled(file, name):
    dataset = file.create_dataset(name, (1 << 28, 2), "f4", chunks=(1 << 28, 2), compression="gzip")
    dataset.id.write_direct_chunk((0, 0), zlib.compress(bytes(1 << 22)) * 600)


@pytest.mark.parametrize("case", OUTSIDE)
@pytest.mark.parametrize("kind", ["store", "lxmert"])
def test_hdf5_that_leads_out_or_claims_what_it_has_not_is_refused_by_name(tmp_path, kind, case):
    spoil, reason = OUTSIDE[case]
    path = (store if kind == "store" else lxmert)(tmp_path / "f.h5")
    shutil.copy(path, tmp_path / "other.h5")
    name = "features" if kind == "store" else "image_features"
    with h5py.File(path, "r+") as file:
        file["elsewhere"] = file[name][:]
        del file[name]
        spoil(file, name)
    if kind == "store":
        message = refusal(FeatureStore, path)
    else:
        message = refusal(extract, LxmertH5(index=tmp_path / "index.json").build(), path, tmp_path / "s.h5")
    assert message.startswith(f"{path}: ") and f"'{name}' {reason}" in message


def write_png(path: Path, *claims) -> Path:
    path.write_bytes(png(*claims))
    return path


@pytest.mark.parametrize("size", [(100_000, 100_000), (12_000, 12_000), (1, 2**31 - 1)])
def test_images_that_claim_more_pixels_than_there_is_room_for_are_refused_by_name(tmp_path, size):
    message = refusal(open_image, write_png(tmp_path / "bomb.png", *size))
    assert re.match(
        rf"{tmp_path}/bomb.png: not a readable image: Image size \({size[0] * size[1]} pixels\) exceeds limit",
        message,
    )


def test_texts_and_profiles_that_unpack_without_end_are_refused_by_name(tmp_path):
    bomb = b"x\0\0" + zlib.compress(bytes(16 << 20))
    picture = write_png(tmp_path / "text.png", 4, 4, (b"zTXt", bomb))
    assert refusal(open_image, picture).startswith(f"{tmp_path}/text.png: ")


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n(/tmp) print\nshowpage\n%%EOF\n"


def test_postscript_that_calls_itself_a_photo_starts_no_program(tmp_path, monkeypatch):
    ghostscript = tmp_path / "bin/gs"
    ghostscript.parent.mkdir()
    ghostscript.write_text(f"#!/bin/sh\ntouch {tmp_path}/mark\n")
    ghostscript.chmod(0o755)
    monkeypatch.setenv("PATH", str(ghostscript.parent), prepend=os.pathsep)
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None)  # Pillow looks for it once
    (tmp_path / "holiday.jpg").write_bytes(EPS)
    assert refusal(open_image, tmp_path / "holiday.jpg") == (
        f"{tmp_path}/holiday.jpg: not a readable image: expected one of {', '.join(FORMATS)}; convert the file to one "
        "of these formats"
    )
    assert not (tmp_path / "mark").exists()
    with contextlib.suppress(Exception), Image.open(tmp_path / "holiday.jpg") as image:
        image.load()
    assert (tmp_path / "mark").exists()  # Pillow would have started it


def test_every_format_that_is_promised_opens(tmp_path):
    assert all(Image.registered_extensions()[suffix] in FORMATS for suffix in SUFFIXES)
    for suffix in SUFFIXES:
        Image.new("RGB", (8, 6), "red").save(tmp_path / f"a{suffix}")
        assert open_image(tmp_path / f"a{suffix}").size == (8, 6)


def test_images_are_opened_in_one_place():
    opened = [path for path in SOURCES for name, _ in calls(path) if name in ("Image.open", "PIL.Image.open")]
    assert {path.relative_to(ROOT).as_posix() for path in opened} == {"mmgen/features/images.py"}


def header(shape: tuple[int, ...]) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return out.getvalue()


@pytest.mark.parametrize(
    ("shape", "zeros", "reason"),
    [
        ((10**9, 4), 96, "'x.npy' claims 16000000000 bytes but contains 224"),
        ((3, 4), 3 << 20, "'x.npy' is 3145856 bytes large; at most 1048576 are read"),
    ],
)
def test_npz_bombs_are_refused_before_they_are_unpacked(tmp_path, monkeypatch, shape, zeros, reason):
    monkeypatch.setattr("mmgen_regions.arrays.MOST_BYTES", 1 << 20)
    (tmp_path / "a").mkdir()
    with (
        zipfile.ZipFile(tmp_path / "a/1.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("x.npy", "w", force_zip64=True) as member,
    ):
        member.write(header(shape))
        member.write(bytes(zeros))
    message = refusal(extract, NpzFolder().build(), tmp_path / "a", tmp_path / "s.h5")
    assert f"{tmp_path}/a/1.npz: {reason}" in message


def test_npy_headers_that_claim_more_than_there_is_are_refused(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/1.npy").write_bytes(header((10**10, 4)) + bytes(96))
    assert f"{tmp_path}/a/1.npy: mmap length is greater than file size" in refusal(
        extract, NpzFolder().build(), tmp_path / "a", tmp_path / "s.h5"
    )


def test_a_gzipped_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("mmgen_regions.tsv.LONGEST_LINE", 1 << 16)
    with gzip.open(tmp_path / "f.tsv.gz", "wb") as file:
        file.write(b"1\t" + bytes(1 << 20))
    message = refusal(extract, BottomUpTsv().build(), tmp_path / "f.tsv.gz", tmp_path / "s.h5")
    assert message == f"{tmp_path}/f.tsv.gz:1: longer than 0 MB; give a TSV file of features"


@pytest.mark.parametrize("read", [lambda path: read_text(path), lambda path: scoring.read_predictions(path)])
def test_gzipped_texts_are_unpacked_to_a_limit_only(tmp_path, monkeypatch, read):
    monkeypatch.setattr("mmgen.files.MOST_BYTES", 1 << 20)
    monkeypatch.setattr("mmgen.files.PIECE", 1 << 16)
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b"[" + b" " * (8 << 20) + b"]"))
    tracemalloc.start()
    message = refusal(read, tmp_path / "bomb.json.gz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert message.startswith(f"{tmp_path}/bomb.json.gz: over 1 MB of text") and peak < 3 << 20


def test_paths_in_a_recipe_stay_plain_paths(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACE", "/elsewhere")
    text = small_runs.RECIPE.format(folder=tmp_path)
    for odd in ("$PLACE/f.h5", "~/f.h5", "file:///f.h5", "$(touch mark)", "{folder}/f.h5", "%PLACE%"):
        (tmp_path / "toy.toml").write_text(text.replace(f"{tmp_path}/features.h5", odd))
        recipe = load(tmp_path / "toy.toml", installed(), sets=(f"output='{odd}'",))[0]
        assert recipe.inputs["image"].features == tmp_path / odd and recipe.output == odd


@pytest.mark.parametrize(
    "change",
    [
        ('name = "toy"', 'name = "../../toy"'),
        ("[inputs.image]", '[inputs."../../image"]'),
        ("[steps.both]", '[steps."../../both"]'),
        ("[metrics.captioneval]", '[metrics."../x"]'),
        ('name = "toy"', 'name = "toy"\nprofile = "../../x"\n[profiles."../../x"]\nseed = 1\n[sequence]'),
    ],
)
def test_names_that_become_folders_are_never_paths(tmp_path, change):
    (tmp_path / "toy.toml").write_text(small_runs.RECIPE.format(folder=tmp_path).replace(*change))
    with pytest.raises(RecipeError) as error:
        load(tmp_path / "toy.toml", installed())
    assert re.search(r"toy\.toml:\d+: .*a name m", str(error.value))


def test_a_recipe_that_a_run_folder_brings_is_checked_like_any_other(saved):
    recipe = json.loads((saved / "recipe.json").read_text())
    (saved / "recipe.json").write_text(json.dumps({**recipe, "profile": "../../x"}))
    with pytest.raises(RecipeError, match=rf"{saved}/recipe.json: profile: a name must start with a letter"):
        load_run(saved)


READERS = {
    "recipe.toml": lambda path: load(path, installed()),
    "parent.toml": lambda path: load(child(path), installed()),
    "picture.png": open_image,
    "requests.jsonl": lambda path: read_sources([path], None),
    "questions.json": read_text,
    "refs(unc).p": read_pickle,
    "boxes.xml": read_annotation,
    "predictions.json": scoring.read_predictions,
    "judge.key.json": lambda path: judged(path, []),
    "weights.safetensors": read_tensors,
    "recipe.json": read_json,
    "features.tsv": lambda path: [*BottomUpTsv().build().records(path)],
    "features.tsv.gz": lambda path: [*BottomUpTsv().build().records(path)],
    "features.hdf5": lambda path: [*LxmertH5(index=index_beside(path)).build().records(path)],
    "index.json": lambda path: LxmertH5(index=path).build(),
    "classes.txt": lambda path: BottomUpTsv(class_names=path).build(),
    "parses.conllu": parses.read,
    "config.yaml": frcnn.settings,
    "objects_vocab.txt": frcnn.read_vocabulary,
    "generations.jsonl": lambda path: generations.read(path.parent),
    "examples.jsonl": lambda path: SavedExamples("test", path, "").split("test"),
    "log.jsonl": curves.read,
}


def index_beside(path: Path) -> Path:
    path.with_name("index.json").write_text("{}")
    return path.with_name("index.json")


def child(path: Path) -> Path:
    path.with_name("child.toml").write_text(f'extends = "{path.name}"')
    return path.with_name("child.toml")


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, name):
    """Reading a pipe without a writer would never end."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / name).symlink_to("pipe")
    with unstuck(tmp_path / "pipe"):
        message = refusal(READERS[name], tmp_path / name)
    assert str(tmp_path / name) in message and "not a regular file, but a pipe, socket or device" in message


@contextlib.contextmanager
def unstuck(pipe: Path):
    """A reader that still waits for the pipe after ten seconds reads nothing, and then fails."""
    timer = threading.Timer(10, lambda: os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK)))
    timer.start()
    yield
    timer.cancel()


@pytest.mark.parametrize("name", ["a.npz", "a.npy", "a_info.json"])
def test_a_pipe_among_arrays_costs_its_image_only(tmp_path, name):
    os.mkfifo(tmp_path / name)
    if name == "a_info.json":
        np.save(tmp_path / "a.npy", np.zeros((1, 2), np.float32))
    with unstuck(tmp_path / name):
        (failed,) = NpzFolder().build().records(tmp_path)
    assert failed.reason.endswith(": not a regular file, but a pipe, socket or device")


def test_a_pipe_among_pictures_is_listed_and_left_out(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    Image.new("RGB", (8, 8)).save(folder / "a.png")
    (folder / "b.png").symlink_to("a.png")
    os.mkfifo(folder / "c.png")
    with unstuck(folder / "c.png"):
        messages = [refusal(picture.load) for picture in folder_pictures(folder) if picture.key == "c"]
    assert messages == [f"{folder}/c.png: not a readable image: not a regular file, but a pipe, socket or device"]
    assert open_image(folder / "b.png").size == (8, 8)


SCRIPT = "<script>document.title='it ran'</script><img src=x onerror=\"document.title='it ran'\">"


@pytest.fixture(scope="module")
def scripted(tmp_path_factory) -> Path:
    """A finished run whose ids, captions and questions are scripts."""
    base = tmp_path_factory.mktemp("scripted")
    shutil.copy(small_runs.runs() / "features.h5", base)
    rows = [
        {
            "id": f"{key} {SCRIPT}",
            "image": key,
            "caption": f"a dog {SCRIPT} </script>",
            "questions": [f"why {SCRIPT}", "what is it"],
        }
        for key in "abc"
    ]
    (base / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (base / "toy.toml").write_text(
        small_runs.RECIPE.format(folder=base).replace("\n[backbone]", f"\ndescription = '''{SCRIPT}'''\n[backbone]", 1)
    )
    recipe = load(base / "toy.toml", installed(), sets=(f"output='{base}/runs'",))[0]
    return run(recipe).path


def pages(run_folder: Path, place: Path) -> dict[str, Path]:
    from mmgen_humaneval.form import make
    from mmgen_humaneval.systems import gather

    sheet = make(gather((run_folder,), (), installed()), place / "judge.html", count=3)
    return {"report": run_folder / "report.html", "judge": sheet.page}


@pytest.mark.parametrize("kind", ["report", "judge"])
def test_scripts_in_texts_are_shown_as_text(scripted, tmp_path, kind):
    page = pages(scripted, tmp_path)[kind]
    text = page.read_text(encoding="utf-8")
    assert "it ran" in text
    assert "<script>document" not in text and "<img src=x" not in text
    if CHROMIUM is None:
        pytest.skip("needs chromium, which is not on this machine, for the rest")
    assert title(page, tmp_path) != "it ran"
    (tmp_path / "open.html").write_text(f"<title>quiet</title>{SCRIPT}")
    assert title(tmp_path / "open.html", tmp_path) == "it ran"  # the browser does run what is not escaped


def title(page: Path, place: Path) -> str:
    """The title of the page after its scripts have run."""
    command = [
        CHROMIUM,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={place}/profile",
        "--virtual-time-budget=2000",
        "--dump-dom",
    ]
    done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=600)
    return re.search(r"<title>(.*?)</title>", done.stdout)[1]


def test_controls_of_a_terminal_are_spelt_out_in_messages():
    assert str(DataError("a\x1b[2Jb\u202ec")) == "a\\x1b[2Jb\\u202ec"
    assert str(RunError("x" * 5000)) == f"{'x' * 400} [...] {'x' * 400}"


STEERING = "\x1b[31mred\x1b[2J \x1b]8;;http://elsewhere\x07link\u202e"


@pytest.fixture(scope="module")
def steering(tmp_path_factory) -> Path:
    """A folder with a recipe, data and pictures whose texts, ids and names contain terminal control sequences."""
    base = tmp_path_factory.mktemp("steering")
    shutil.copy(small_runs.runs() / "features.h5", base)
    rows = [
        {"id": f"{key}{STEERING}", "image": key, "caption": f"a dog {STEERING}", "questions": [f"why {STEERING}"]}
        for key in "abc"
    ]
    (base / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    texts = [{"id": row["id"], "text": f"what {STEERING}"} for row in rows]
    (base / "texts.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))
    (base / "asked.jsonl").write_text(json.dumps({"id": STEERING, "image": "a", "caption": STEERING}))
    (base / "pictures").mkdir()
    (base / f"pictures/a{STEERING.replace('/', '')}.png").write_text("no picture")
    Image.new("RGB", (64, 64)).save(base / "pictures/b.png")
    text = small_runs.RECIPE.format(folder=base).replace("epochs = 2", "epochs = 1")
    (base / "toy.toml").write_text(text.replace("\n[backbone]", f"\ndescription = {json.dumps(STEERING)}\n[backbone]"))
    return base


RUN_MADE = "runs/toy/default/seed-0"


COMMANDS = {
    "data check": ["data", "check", "toy.toml"],
    "show": ["show", "toy.toml", "--set", r'backbone.weights="\u001b[31mred\u001b[2J"'],
    "run": ["run", "toy.toml"],
    "generate": ["generate", RUN_MADE, "asked.jsonl"],
    "score": ["score", "texts.jsonl", "--references", "rows.jsonl", "--set", "captioneval.meteor=false"],
    "score of a run": ["score", RUN_MADE],
    "compare": ["compare", RUN_MADE],
    "probe": ["probe", RUN_MADE, "--probe", "attention"],
    "report": ["report", RUN_MADE],
    "judge": ["judge", "make", RUN_MADE, "--n", "2", "--out", "judge.html"],
    "features": ["features", "extract", "pictures", "f.h5", "--type", "timm_grid", "--set", "model=resnet18"],
}


def test_no_command_lets_texts_steer_the_terminal(steering, monkeypatch):
    from click.testing import CliRunner

    from mmgen.cli import main

    monkeypatch.chdir(steering)
    for name, arguments in COMMANDS.items():
        said = CliRunner().invoke(main, arguments).output
        assert said and re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", said) is None, (name, said)
        if name in ("data check", "run", "generate", "show", "features"):
            assert re.search(r"\\(x|u00)1b\[31mred\\(x|u00)1b\[2J", said), (name, said)
    texts = generations.read(Path(RUN_MADE, "steps/both"))
    assert [some[0].id for some in texts] == [
        f"test-{key}{STEERING}" for key in "abc"
    ]  # files keep what they were given


def test_a_shown_recipe_keeps_its_texts(steering):
    from mmgen.recipe.show import toml

    recipe, layers = load(steering / "toy.toml", installed())
    odd = f"{STEERING} \U000e0001 \x7f"
    shown = toml(recipe.model_copy(update={"name": odd}).identity(), layers)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e\U000e0001]", shown)
    assert tomllib.loads(shown)["name"] == odd
