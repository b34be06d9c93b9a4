"""The list of hooks."""

import mmgen
from mmgen.registry import KINDS


def test_a_kind_is_a_hook_and_the_class_it_returns():
    """A recipe's tables follow from the recipe's class, and each class is exported by `mmgen`."""
    from mmgen.configs import nested_kinds
    from mmgen.recipe.tables import Recipe

    for kind, (hook, config) in KINDS.items():
        assert hook == f"register_{kind}s" and getattr(mmgen, config.__name__) is config
        assert config.__name__ in mmgen.__all__
    tables = nested_kinds(Recipe)
    assert {*tables.values()} <= {kind for kind, (_, config) in KINDS.items() if config.in_recipes}
    assert tables["data"] == "dataset" and tables["inputs"] == "embedder"
