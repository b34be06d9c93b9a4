"""A real Ray with two nodes: results are those of one process, also after workers and the command are killed."""

import json
import os
import sys

import numpy as np
import pytest
from kit import toys
from kit.toys import mmgen_here as mmgen
from mmgen_ray import cluster as clusters
from PIL import Image

from mmgen.errors import RunError
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
    """Pictures, one of which cannot be read, and their features as one process makes them."""
    folder = tmp_path_factory.mktemp("ray")
    (folder / "pictures").mkdir()
    draw = np.random.default_rng(0)
    for number in range(40):
        pixels = draw.integers(0, 255, (48, 64, 3), np.uint8)
        Image.fromarray(pixels).save(folder / "pictures" / f"p{number:02}.png")
    (folder / "pictures" / "torn.png").write_text("no picture")
    done = mmgen(folder, "features", "extract", "pictures", "single", *EXTRACT)
    assert done.returncode == 0, done.stderr
    return folder


def test_features_are_those_of_one_process_on_two_nodes(folder, address):
    """Equal but for rounding, since other pictures share a batch."""
    command = ("ray", "shards", "features", "extract", "pictures", "r", *EXTRACT, "--address", address)
    done = mmgen(folder, *command, "--shards", "6")
    assert done.returncode == 0, done.stderr
    assert len(list(folder.glob("r/shard-*-of-6-00000.h5"))) == 6
    stored, single = FeatureStore(folder / "r"), FeatureStore(folder / "single")
    assert sorted(stored) == sorted(single) and len(single) == 40
    assert all(np.allclose(stored.read(key).features, single.read(key).features, atol=2e-3) for key in single)


def test_a_task_that_fails_is_one_line(folder, address):
    with clusters.cluster(address) as cluster, pytest.raises(RunError) as error:
        cluster.run_all({"shard 1/1": ["features", "extract", "nowhere", "n", "--type", "roi"]})
    assert str(error.value) == "shard 1/1: nowhere: no such folder; give a folder of images"
    done = mmgen(folder, "ray", "run", "toy.toml", "--address", "127.0.0.1:1")
    assert done.returncode == 1 and "toy.toml" in done.stderr
    (folder / "toy.toml").write_text(RECIPE)
    done = mmgen(folder, "ray", "run", "toy.toml", "--address", "127.0.0.1:1")
    assert done.returncode == 1 and done.stderr == (
        "error: --address 127.0.0.1:1: no Ray of this version answers; start one with `ray start --head`, with the "
        "same versions everywhere\n"
    )
    done = mmgen(folder, "ray", "run", "toy.toml", "--address", address, "--threads", "3")
    assert done.stderr == "error: a task needs 3 CPUs (--threads), which no machine has\n"


def test_a_worker_that_ends_is_replaced(folder, address):
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    marks = folder / "marks"
    marks.mkdir()
    with clusters.cluster(address) as cluster:
        task = cluster.submit(_dies_twice, marks, retry_exceptions=True)
        assert ray.get(task) == 2


def _dies_twice(folder, marks):
    died = len(list(marks.iterdir()))
    if died < 2:
        (marks / str(died)).touch()
        os._exit(1)
    return died


def test_steps_and_answers_are_those_of_one_process(tmp_path, address):
    for name in ("single", "shared"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "toy.toml").write_text(RECIPE)
    done = mmgen(tmp_path / "single", "run", "toy.toml", "--threads", "1")
    assert done.returncode == 0, done.stderr
    done = mmgen(tmp_path / "shared", "ray", "run", "toy.toml", "--threads", "1", "--address", address)
    assert done.returncode == 0, done.stderr
    files = [path.relative_to(tmp_path / "single") for path in (tmp_path / "single" / toys.PLACE).rglob("*")]
    compared = [path for path in files if path.name in ("weights.safetensors", "generations.jsonl", "scores.json")]
    assert len(compared) == 7
    for path in [*compared, toys.PLACE / "table.md"]:
        assert (tmp_path / "shared" / path).read_bytes() == (tmp_path / "single" / path).read_bytes(), path
    seed = tmp_path / "shared" / toys.PLACE
    lines = [json.dumps({"caption": f"{number} dogs and a cat"}) for number in range(9)]
    (seed / "captions.jsonl").write_text("\n".join(lines) + "\n")
    generate = ("generate", ".", "captions.jsonl", "--out")
    assert mmgen(seed, *generate, "one.jsonl").returncode == 0
    done = mmgen(seed, "ray", "shards", *generate, "many.jsonl", "--address", address)
    assert done.returncode == 0, done.stderr
    answers, expected = (
        [json.loads(line) for line in (seed / name).read_text().splitlines()] for name in ("many.jsonl", "one.jsonl")
    )
    assert [[text["text"] for text in line["texts"]] for line in answers] == [
        [text["text"] for text in line["texts"]] for line in expected
    ]
    assert len(answers) == 9
