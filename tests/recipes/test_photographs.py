"""recipes/photographs.toml from an empty folder to a question about a photograph, without the web: a server on the
loopback stands for the hosts, local folders for the hub; the pictures, questions and words are real ones."""

import base64
import contextlib
import csv
import io
import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from kit import served
from kit.beside import shared
from kit.hosts import host, moved, random_faults, vqg_coco
from kit.toys import mmgen_here
from PIL import Image

import mmgen
from mmgen.downloads import https
from mmgen.downloads.sources import published_set
from mmgen.features.store import FeatureStore

# --- the hub, in local folders ----------------------------------------------------------------------------------------


NEWEST = "0123456789abcdef0123456789abcdef01234567"  # the commit of every repository


@contextlib.contextmanager
def local_hub(cache, repositories):
    """The hub has these repositories: name -> folder. What is downloaded goes to `cache`, which starts empty. Yields
    the names and revisions that were downloaded."""
    import huggingface_hub
    from huggingface_hub import constants

    downloaded = []

    def snapshot_download(repository, revision=None, **_):
        downloaded.append((repository, revision))
        model = cache / f"models--{repository.replace('/', '--')}"
        folder = model / "snapshots" / (revision or NEWEST)
        shutil.copytree(repositories[repository], folder, dirs_exist_ok=True)
        if revision is None:
            (model / "refs").mkdir(exist_ok=True)
            (model / "refs/main").write_text(NEWEST)
        return str(folder)

    def model_info(api, repository, revision=None, **_):
        weights = Path(repositories[repository], "model.safetensors")
        files = [SimpleNamespace(rfilename=weights.name, size=weights.stat().st_size)]
        return SimpleNamespace(sha=revision or NEWEST, siblings=files, card_data=SimpleNamespace(license="apache-2.0"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "HF_HUB_CACHE", str(cache))
        patch.setattr(constants, "HF_HUB_OFFLINE", False)
        patch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
        patch.setattr(huggingface_hub.HfApi, "model_info", model_info)
        yield downloaded


def timm_network(model, folder):
    """A network of timm with random weights, saved as published ones are."""
    import timm
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    folder.mkdir()
    save_file(timm.create_model(model, num_classes=0).state_dict(), folder / "model.safetensors")
    return folder


def dfine(folder):
    """A small D-FINE with random weights, and the classes of Objects365, of which the first is none."""
    import torch
    import transformers

    channels = {"stage_in_channels": [8, 8, 8, 16], "stage_mid_channels": [8] * 4, "stage_out_channels": [8, 8, 16, 16]}
    backbone = transformers.HGNetV2Config(
        **channels,
        stem_channels=[3, 8, 8],
        hidden_sizes=[8, 8, 16, 16],
        depths=[1] * 4,
        embedding_size=8,
        stage_num_blocks=[1] * 4,
        stage_downsample=[False, True, True, True],
        stage_light_block=[False] * 4,
        stage_kernel_size=[3] * 4,
        stage_numb_of_layers=[1] * 4,
        out_features=["stage2", "stage3", "stage4"],
    )
    config = transformers.DFineConfig(
        backbone_config=backbone,
        encoder_hidden_dim=16,
        encoder_in_channels=[8, 16, 16],
        decoder_in_channels=[16] * 3,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        d_model=16,
        num_queries=40,
        decoder_layers=2,
        decoder_n_points=[2] * 3,
        hidden_expansion=0.5,
        num_denoising=0,
        id2label={0: "None"} | {number: f"thing {number}" for number in range(1, 366)},
    )
    torch.manual_seed(0)
    transformers.DFineForObjectDetection(config).save_pretrained(folder)
    transformers.RTDetrImageProcessor(size={"height": 64, "width": 64}).save_pretrained(folder)
    return folder


# --- tests ------------------------------------------------------------------------------------------------------------


ROOT = Path(__file__).resolve().parents[2]
SPLITS = ("train", "val", "test")
SOME = (8, 3, 4)  # pictures of the splits
ALL = (257, 125, 122)  # and one that is in none of them
DINO = "vit_small_patch14_reg4_dinov2.lvd142m"
COMMANDS = re.search("## Photographs.*?```sh\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)[1]
RUN, GENERATE = (line.partition("#")[0].split()[1:] for line in COMMANDS.splitlines()[1:])  # as README prints them
QUICK = {"training.epochs": 1, "training.batch_size": 8, "decoding.min_new_tokens": 4, "metrics.overlap.meteor": False}


@pytest.fixture
def folder(tmp_path):
    """An empty folder with the recipe."""
    (tmp_path / "recipes").mkdir()
    shutil.copy(ROOT / "recipes/photographs.toml", tmp_path / "recipes")
    return tmp_path


def photographs(real_data, counts):
    """The files of the hosts, with so many pictures of each split, and the path of a picture that is in none."""
    at = {int(path.stem.rpartition("_")[2]): path for path in sorted((real_data / "vqg_coco/images").iterdir())}
    questions, used = {}, []
    for split, count in zip(SPLITS, counts, strict=True):
        name, file = f"coco_{split}_all.csv", io.StringIO()
        with (real_data / "vqg_coco" / name).open(newline="") as published:
            rows = [row for row in csv.reader(published) if row[0] == "image_id" or int(row[0]) in at]
        csv.writer(file).writerows(rows[: count + 1])
        questions[name] = file.getvalue()
        used += [int(row[0]) for row in rows[1 : count + 1]]
    captions = json.loads((real_data / "vqg_coco/captions_from_categories.json").read_text())
    sizes = {number: Image.open(at[number]).size for number in used}
    captions["images"] = [{"file_name": at[n].name, "width": w, "height": h} for n, (w, h) in sizes.items()]
    unseen = next(path for number, path in at.items() if number not in sizes)
    assert len(used) == sum(counts)
    return vqg_coco(questions, {at[n].name: at[n].read_bytes() for n in used}, captions), unseen


@pytest.fixture(scope="module")
def repositories(tmp_path_factory):
    """The hub: MiniLM stands for BERT and DistilBERT, networks with random weights for the others."""
    folder = tmp_path_factory.mktemp("hub")
    words = dict.fromkeys(("distilbert/distilbert-base-cased", "google-bert/bert-base-cased"), shared("weights/minilm"))
    boxes = dfine(folder / "boxes")
    return {**words, f"timm/{DINO}": timm_network(DINO, folder / "dino"), "ustc-community/dfine-medium-obj365": boxes}


@contextlib.contextmanager
def on_loopback(files, fault=lambda path: ""):
    """The hosts of VQG_COCO on the loopback."""
    with pytest.MonkeyPatch.context() as patch, host(files, fault) as server:
        patch.setattr(https, "BACKOFF", 0.001)
        patch.setattr(https, "TIMEOUT", 1.0)
        patch.setenv("no_proxy", "127.0.0.1")
        patch.setattr("mmgen.runs.prepare.published_set", lambda name: moved(published_set(name), server.url))
        yield server


def setting(options):
    return [word for key, value in options.items() for word in ("--set", f"{key}={json.dumps(value)}")]


def test_random_weights_are_refused(folder):
    done = mmgen_here(folder, "check", "recipes/photographs.toml", "--set", 'inputs.image.extractor.weights="random"')
    assert done.returncode == 1 and "random weights, which this recipe refuses (pretrained = true)" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("counts", "options"), [(SOME, QUICK), pytest.param(ALL, {}, marks=pytest.mark.exhaustive, id="all")]
)
def test_from_nothing_to_a_question_about_a_photograph(counts, options, folder, real_data, repositories):
    """README's commands, as they are printed."""
    files, unseen = photographs(real_data, counts)
    count, faults = sum(counts), random_faults(0, 0.1, ("cut", "busy", "reset"))
    with on_loopback(files, faults) as server, local_hub(folder / "cache", repositories) as downloaded:
        refused = mmgen_here(folder, *RUN, *setting(options))
        assert refused.returncode == 1 and "add --yes to accept these licences" in refused.stderr and not server.seen
        assert "1,500 pictures" in refused.stdout and "244.8" in refused.stdout
        assert "licence of captions: CC BY 4.0" in refused.stdout and "MB in all" in refused.stdout
        assert f"timm/{DINO}: the network, from huggingface.co, revision {NEWEST}: 88 MB, licence" in refused.stdout
        done = mmgen_here(folder, *RUN, "--yes", *setting(options))
        assert done.returncode == 0, done.stderr
        encoder = ("distilbert/distilbert-base-cased", "6ea81172465e8b0ad3fddeed32b986cdcdcffcf0")
        assert {*downloaded} == {encoder, (f"timm/{DINO}", None)}
        record = json.loads((folder / "data/vqg_coco/downloads.json").read_text())
        assert record["networks"] == {f"timm/{DINO}": NEWEST} and len(record["files"]) == count + 4
        shutil.copy(unseen, folder / "photo.jpg")
        asked = mmgen_here(folder, *GENERATE)
        predictor = mmgen.load(folder / GENERATE[1], "image", device="cpu")
        with served.client(predictor) as client:
            body = {"inputs": {"image": base64.b64encode(unseen.read_bytes()).decode()}}
            answer = client.post("/v1/ask", json=body).json()
        assert answer["texts"][0]["text"] == predictor.ask({"picture": unseen}).texts[0].text
    assert asked.returncode == 0 and len(asked.stdout.split()) > 2, asked.stderr
    assert len([*(folder / "data/vqg_coco/images-1500").iterdir()]) == count
    assert f"here other features, {count} of {count} pictures" in done.stdout
    run = folder / GENERATE[1]
    table = (run / "table.md").read_text()
    header = next(line for line in table.splitlines() if line.startswith("|"))
    assert all(column in header for column in ("BLEU-4", "unique", "commonest"))
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")]
    assert {"caption", "image_frozen", "image", "both", "MDN-Joint (published)"} <= {*rows}
    assert (run / "report.html").exists()


@pytest.mark.slow
def test_the_profile_gpu_goes_through(folder, real_data, repositories):
    """Boxes of a small D-FINE with random weights, features of a network with the shape of DINOv2-S in them; fewer
    pixels. Networks that are missing are fetched when the data is there too, in the revisions that were recorded."""
    files, unseen = photographs(real_data, SOME)
    settings = setting(QUICK | {"inputs.image.extractor.image_size": 112})
    names = [f"timm/{DINO}", "ustc-community/dfine-medium-obj365"]
    with on_loopback(files), local_hub(folder / "cache", repositories) as downloaded:
        assert mmgen_here(folder, *RUN, "--profile", "gpu", "--step", "caption", "--yes", *settings).returncode == 0
        assert {(name, None) for name in names} < {*downloaded}
        shutil.rmtree(folder / "cache")
        del downloaded[:]
        refused = mmgen_here(folder, *RUN, "--profile", "gpu", *settings)
        assert refused.returncode == 1 and all(f"{name}: the network" in refused.stdout for name in names)
        done = mmgen_here(folder, *RUN, "--profile", "gpu", "--yes", *settings)
        assert done.returncode == 0, done.stderr
        assert {(name, NEWEST) for name in names} < {*downloaded}
        asked = mmgen_here(folder, "generate", "runs/photographs/gpu/seed-0", str(unseen))
    assert asked.returncode == 0 and len(asked.stdout.split()) > 2, asked.stderr
    (features,) = (folder / "runs/photographs/gpu/features").iterdir()
    assert len(store := FeatureStore(features)) == sum(SOME)
    assert store.read(next(iter(store))).features.shape == (36, 384)
