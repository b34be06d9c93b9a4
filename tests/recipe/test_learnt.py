"""What `mmgen check` says about what steps train."""

import pytest
from kit import toys


@pytest.mark.parametrize(("key", "verb"), [("gradient_checkpointing", "recompute"), ("torch_compile", "compile")])
def test_a_backbone_that_cannot_recompute_or_compile(tmp_path, key, verb):
    said = f"the backbone 'albert' cannot {verb} its layers; remove this key"
    for changes, path in (
        ({"training": {key: True}}, f"training.{key}"),
        (
            {"steps": {"first": {"inputs": ["caption"], "train": ["backbone"], "training": {key: True}}}},
            f"steps.first.training.{key}",
        ),
    ):
        text = toys.recipe(backbone={"type": "albert"}, **changes)
        (tmp_path / "toy.toml").write_text(text)
        number = text.splitlines().index(f"{key} = true") + 1
        assert toys.mmgen_here(tmp_path, "check", "toy.toml").stderr == f"error: toy.toml:{number}: {path}: {said}\n"
    (tmp_path / "toy.toml").write_text(toys.recipe(training={key: True}))
    assert toys.mmgen_here(tmp_path, "check", "toy.toml").returncode == 0


def test_compiled_layers_cannot_be_sharded(tmp_path):
    (tmp_path / "toy.toml").write_text(toys.recipe(training={"torch_compile": True, "shard": True}))
    done = toys.mmgen_here(tmp_path, "check", "toy.toml")
    assert "training.shard: cannot be used with torch_compile = true; set only one of the two\n" in done.stderr
