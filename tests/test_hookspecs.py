"""The list of hooks."""

import mmgen
from mmgen.recipe.tables import NAMED_PARTS, PARTS
from mmgen.registry import KINDS


def test_a_kind_is_a_hook_and_the_class_it_returns():
    """A recipe's tables follow from the recipe's class, and each class is exported by `mmgen`."""
    for kind, (hook, config) in KINDS.items():
        assert hook == f"register_{kind}s" and getattr(mmgen, config.__name__) is config
        assert config.__name__ in mmgen.__all__
    in_recipes = {kind for kind, (_, config) in KINDS.items() if config.in_recipes}
    assert {*PARTS.values(), *NAMED_PARTS.values()} <= in_recipes
    assert PARTS["data"] == "dataset" and NAMED_PARTS["inputs"] == "embedder"
