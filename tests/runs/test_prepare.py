"""Preparations and checks of a run before its first step trains."""

from kit import toys
from kit.toys import PLACE, mmgen_here


def test_a_metric_with_wrong_references_ends_the_run_before_training(tmp_path, monkeypatch):
    from mmgen_scenes.metric import DiscoveryMetric

    monkeypatch.setattr(DiscoveryMetric, "references", lambda self, examples: {"relevance": 1.0})
    (tmp_path / "toy.toml").write_text(toys.recipe(data={"train_size": 8, "test_size": 3}))
    done = mmgen_here(tmp_path, "run", "toy.toml")
    assert done.returncode == 1
    assert done.stderr.startswith("error: metrics.meaning (") and done.stderr.endswith(
        "): references returns {'relevance': 1.0}; expected a mmgen.tensors.Scores, or None\n"
    )
    assert "learning" not in done.stdout and not (tmp_path / PLACE / "steps").exists()
