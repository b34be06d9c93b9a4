"""Preparations and checks of a run before its first step trains."""

from types import SimpleNamespace

from kit import toys
from kit.stores import FINGERPRINT, record
from kit.toys import PLACE, mmgen_here

from mmgen.features.writer import StoreWriter
from mmgen.parts import Picture
from mmgen.progress import Progress
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs import prepare


def test_a_metric_with_wrong_references_ends_the_run_before_training(tmp_path, monkeypatch):
    from mmgen_scenes.metric import DiscoveryMetric

    monkeypatch.setattr(DiscoveryMetric, "references", lambda self, examples: {"relevance": 1.0})
    (tmp_path / "toy.toml").write_text(toys.recipe(data={"train_size": 8, "test_size": 3}))
    done = mmgen_here(tmp_path, "run", "toy.toml")
    assert done.returncode == 1 and done.stderr.startswith("error: metrics.meaning (") and done.stderr.count("\n") == 1
    assert ": training" not in done.stdout and not (tmp_path / PLACE / "steps").exists()


def test_a_store_with_all_pictures_needs_no_extractor(tmp_path, monkeypatch):
    path = tmp_path / "features/image"
    with StoreWriter(path, FINGERPRINT) as writer:
        writer.add(record("a"))
    image = {"type": "regions", "extractor": toys.ROI}
    steps = {"image": {"inputs": ["image"], "train": ["image"]}}
    (tmp_path / "toy.toml").write_text(toys.recipe(inputs={"image": image}, steps=steps))
    monkeypatch.setattr(prepare, "features_file", lambda *_: path)
    monkeypatch.setattr(prepare, "extract", None)
    recipe, _ = load(tmp_path / "toy.toml", installed())
    datasets = SimpleNamespace(pictures=lambda: [Picture("a", lambda: None)])
    accelerator = SimpleNamespace(is_main_process=True, wait_for_everyone=lambda: None)
    filled = prepare.fill_stores(recipe, datasets, None, accelerator, Progress())
    assert filled.inputs["image"].features == path
