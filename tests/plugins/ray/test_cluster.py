"""A real Ray with two nodes: results are those of one process, also after workers and the command are killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from kit import toys
from kit.toys import mmgen_here as mmgen
from mmgen_ray import engine as engines
from mmgen_ray.shards import Extraction, run_shards
from PIL import Image

from mmgen.features.store import FeatureStore

ray = pytest.importorskip("ray", reason='needs ray (pip install ".[ray]")')
pytestmark = pytest.mark.slow

EXTRACT = ("--type", "roi", "--set", "model=test_resnet", "--set", "image_size=32", "--set", "weights=random")
RECIPE = toys.three_steps()


@pytest.fixture(scope="module")
def address():
    """The address of two nodes with two CPUs each, on this machine."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    cluster.add_node(num_cpus=2)
    yield cluster.address
    cluster.shutdown()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pictures, two of which cannot be read, and their features as one process makes them."""
    folder = tmp_path_factory.mktemp("ray")
    (folder / "pictures").mkdir()
    draw = np.random.default_rng(0)
    for number in range(40):
        pixels = draw.integers(0, 255, (48, 64, 3), np.uint8)
        Image.fromarray(pixels).save(folder / "pictures" / f"p{number:02}.png")
    for name in ("torn.png", "text.jpg"):
        (folder / "pictures" / name).write_text("no picture")
    done = mmgen(folder, "features", "extract", "pictures", "whole.h5", *EXTRACT)
    assert done.returncode == 0, done.stderr
    return folder


def equal(store: Path, expected: Path) -> bool:
    """Whether features are equal but for rounding, since other pictures share a batch."""
    stored, single = FeatureStore(store), FeatureStore(expected)
    return sorted(stored) == sorted(single) and all(
        np.allclose(stored.read(key).features, single.read(key).features, atol=2e-3) for key in single
    )


def test_features_are_those_of_one_process_on_two_nodes(folder, address):
    done = mmgen(folder, "ray", "features", "extract", "pictures", "r.h5", *EXTRACT, "--address", address)
    assert done.returncode == 0, done.stderr
    assert equal(folder / "r.h5", folder / "whole.h5") and done.stdout.splitlines()[-1] == "r.h5: 40 images"
    assert len(list(folder.glob("r-*-of-16.h5"))) > 10
    rows = [line.split("\t") for line in (folder / "r.h5.broken.tsv").read_text().splitlines()]
    assert [key for key, _ in rows] == ["text", "torn"] and all("not a readable image" in reason for _, reason in rows)
    assert "r.h5.broken.tsv: 2 pictures could not be read" in done.stderr
    (folder / "pictures" / "text.jpg").unlink()
    (folder / "pictures" / "torn.png").unlink()
    done = mmgen(folder, "ray", "features", "extract", "pictures", "r.h5", *EXTRACT, "--address", address)
    assert done.returncode == 0 and not (folder / "r.h5.broken.tsv").exists()


class Killed(Extraction):
    """An extraction whose process is killed in each shard, once, after its first image."""

    def do(self, shard, board):
        from mmgen.features.writer import StoreWriter

        mark, add = self.folder / f"killed-{shard.number}", StoreWriter.add

        def add_and_die(writer, record):
            added = add(writer, record)
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return added

        StoreWriter.add = add_and_die
        try:
            return super().do(shard, board)
        finally:
            StoreWriter.add = add


def test_killed_workers_are_replaced_and_go_on(folder, address):
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    sets = tuple(EXTRACT[3::2])
    work = Killed(folder, "pictures", Path("k.h5"), "roi", sets, False)
    with engines.engine(address, None) as cluster:
        run_shards(cluster, work, folder / "k.h5", 3, "images")
    assert len(list(folder.glob("killed-*"))) == 3
    assert mmgen(folder, "merge", "k.h5").returncode == 0
    assert equal(folder / "k.h5", folder / "whole.h5")


def test_a_task_that_fails_is_one_line(folder, address):
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with engines.engine(address, None) as cluster:
        tasks = {cluster.submit(_dies): "shard 1/1"}
        with pytest.raises(engines.RunError) as error:
            cluster.run_all(tasks, "x", "shards", "")
    assert str(error.value) == (
        "shard 1/1: its worker ended 4 times; it may have been killed for lack of memory; run the same command again "
        "to continue"
    )
    done = mmgen(folder, "ray", "features", "extract", "pictures", "r.h5", *EXTRACT, "--address", "127.0.0.1:1")
    assert done.returncode == 1 and done.stderr == (
        "error: --address 127.0.0.1:1: no Ray of this version answers; start one with `ray start --head`, and the same "
        "versions of Python and Ray on every machine\n"
    )


def _dies():
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_same_command_continues_after_it_is_killed(folder):
    """With a Ray that the command starts: four slots on any number of cores."""
    command = [sys.executable, "-m", "mmgen", "ray", "features", "extract", "pictures", "d.h5", *EXTRACT]
    started = subprocess.Popen([*command, "--slots", "4", "--shards", "6"], cwd=folder, start_new_session=True)
    while not any(folder.glob("d-*-of-6.h5*")) and started.poll() is None:
        time.sleep(0.02)
    os.kill(started.pid, signal.SIGKILL)
    assert started.wait() == -signal.SIGKILL and not (folder / "d.h5").exists()
    done = subprocess.run([*command, "--slots", "4"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(list(folder.glob("d-*-of-6.h5"))) == 6 and equal(folder / "d.h5", folder / "whole.h5")


def test_steps_and_seeds_are_those_of_one_process(tmp_path, address):
    for name in ("single", "shared"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "toy.toml").write_text(RECIPE)
    done = mmgen(tmp_path / "single", "run", "toy.toml", "--seeds", "2", "--threads", "1")
    assert done.returncode == 0, done.stderr
    options = ("--seeds", "2", "--threads", "1", "--address", address)
    done = mmgen(tmp_path / "shared", "ray", "run", "toy.toml", *options)
    assert done.returncode == 0, done.stderr
    place = Path("runs", "toy", "default")
    files = [path.relative_to(tmp_path / "single") for path in (tmp_path / "single" / place).rglob("*")]
    compared = [path for path in files if path.name in ("weights.safetensors", "generations.jsonl", "scores.json")]
    assert len(compared) == 2 * 7
    for path in [*compared, place / "seed-0" / "table.md", place / "seed-1" / "table.md"]:
        assert (tmp_path / "shared" / path).read_bytes() == (tmp_path / "single" / path).read_bytes(), path
    texts = [path.name for path in (tmp_path / "shared" / place / "seed-0" / "steps").iterdir()]
    assert sorted(texts) == ["apart", "first", "second"]
    seed = tmp_path / "shared" / place / "seed-0"
    lines = [json.dumps({"caption": f"{number} dogs and a cat"}) for number in range(9)]
    (seed / "captions.jsonl").write_text("\n".join(["no JSON", *lines]) + "\n")
    for how, out in (((), "one.jsonl"), (("ray",), "many.jsonl")):
        cluster = ("--address", address) if how else ()
        done = mmgen(seed, *how, "generate", ".", "captions.jsonl", "--out", out, *cluster)
        assert done.returncode == 0, done.stderr
    answers, expected = (
        [json.loads(line) for line in (seed / name).read_text().splitlines()] for name in ("many.jsonl", "one.jsonl")
    )
    for answer, line in zip(answers, expected, strict=True):
        assert answer["id"] == line["id"] and answer.get("error") == line.get("error")
        texts, expected_texts = answer.get("texts", []), line.get("texts", [])
        assert [text["text"] for text in texts] == [text["text"] for text in expected_texts]
    assert (seed / "many.jsonl.broken.tsv").read_text().count("\n") == 1
