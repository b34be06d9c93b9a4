"""recipes/photographs.toml from an empty folder to a question about a photograph, without the web: a server on the
loopback stands for the hosts, folders stand for names of the hub; the pictures, questions and words are real ones."""

import contextlib
import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from kit.beside import shared
from kit.hosts import host, moved, random_faults, vqg_coco
from kit.toys import mmgen_here
from PIL import Image

from mmgen.downloads import https
from mmgen.downloads.sources import published_set

ROOT = Path(__file__).resolve().parents[2]
COUNTS = {"train": 8, "val": 3, "test": 4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An empty folder with the recipe."""
    folder = tmp_path_factory.mktemp("photographs")
    (folder / "recipes").mkdir()
    shutil.copy(ROOT / "recipes/photographs.toml", folder / "recipes")
    return folder


@pytest.fixture(scope="module")
def photographs(real_data):
    """The files of the hosts, with a part of the pictures, and the path of a picture that is in none of the splits."""
    at = {int(path.stem.rpartition("_")[2]): path for path in sorted((real_data / "vqg_coco/images").iterdir())}
    questions, used = {}, []
    for split, count in COUNTS.items():
        name, file = f"coco_{split}_all.csv", io.StringIO()
        with (real_data / "vqg_coco" / name).open(newline="") as published:
            rows = [row for row in csv.reader(published) if row[0] == "image_id" or int(row[0]) in at]
        csv.writer(file).writerows(rows[: count + 1])
        questions[name] = file.getvalue()
        used += [int(row[0]) for row in rows[1 : count + 1]]
    captions = json.loads((real_data / "vqg_coco/captions_from_categories.json").read_text())
    sizes = {number: Image.open(at[number]).size for number in used}
    captions["images"] = [{"id": n, "width": width, "height": height} for n, (width, height) in sizes.items()]
    unseen = next(path for number, path in at.items() if number not in sizes)
    return vqg_coco(questions, {at[n].name: at[n].read_bytes() for n in used}, captions), unseen


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A small network with random weights, saved as published ones are."""
    import timm
    from safetensors.torch import save_file

    path = tmp_path_factory.mktemp("network") / "model.safetensors"
    save_file(timm.create_model("test_vit", num_classes=0).state_dict(), path)
    return path


@contextlib.contextmanager
def on_loopback(files, fault=lambda path: ""):
    """The hosts of VQG_COCO on the loopback."""
    with pytest.MonkeyPatch.context() as patch, host(files, fault) as server:
        patch.setattr(https, "BACKOFF", 0.001)
        patch.setattr(https, "TIMEOUT", 1.0)
        patch.setenv("no_proxy", "127.0.0.1")
        patch.setattr("mmgen.runs.prepare.published_set", lambda name: moved(published_set(name), server.url))
        yield server


def test_random_weights_are_refused(folder):
    done = mmgen_here(folder, "check", "recipes/photographs.toml", "--set", 'inputs.image.extractor.weights="random"')
    assert done.returncode == 1 and "random weights, which this recipe refuses (pretrained = true)" in done.stderr


@pytest.mark.slow
def test_from_nothing_to_a_question_about_a_photograph(folder, photographs, network):
    files, unseen = photographs
    count = sum(COUNTS.values())
    sets = {
        "backbone.type": "bert",
        "backbone.weights": str(shared("weights/minilm")),
        "inputs.image.extractor.model": "test_vit",
        "inputs.image.extractor.weights": str(network),
        "inputs.image.extractor.image_size": 160,
        "training.epochs": 1,
        "training.batch_size": 8,
        "training.learning_rate": 1e-3,
        "decoding.num_beams": 1,
        "decoding.min_new_tokens": 4,
        "metrics.overlap.meteor": False,
    }
    options = [word for key, value in sets.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    with on_loopback(files, random_faults(0, 0.1, ("cut", "busy", "reset"))) as server:
        refused = mmgen_here(folder, "run", "recipes/photographs.toml", *options)
        assert refused.returncode == 1 and "add --yes to accept these licences" in refused.stderr and not server.seen
        assert "1,500 pictures" in refused.stdout and "244.8" in refused.stdout
        assert "licence of captions: CC BY 4.0" in refused.stdout
        done = mmgen_here(folder, "run", "recipes/photographs.toml", "--yes", *options)
    assert done.returncode == 0, done.stderr
    assert len([*(folder / "data/vqg_coco/images-1500").iterdir()]) == count
    assert f"here other features, {count} of {count} pictures" in done.stdout
    run = folder / "runs/photographs/laptop/seed-0"
    table = (run / "table.md").read_text()
    header = next(line for line in table.splitlines() if line.startswith("|"))
    assert all(column in header for column in ("BLEU-4", "unique", "commonest"))
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")]
    assert {"caption", "image_frozen", "image", "both", "MDN-Joint (published)"} <= {*rows}
    shutil.copy(unseen, folder / "photo.jpg")
    asked = mmgen_here(folder, "generate", str(run), "photo.jpg")
    assert asked.returncode == 0 and len(asked.stdout.split()) > 2, asked.stderr
    assert (run / "report.html").exists()
