"""Without each of our entry points in turn: the rest loads, and the main recipe is valid, or the missing part is
named."""

import importlib.metadata
from pathlib import Path

import pytest

from mmgen import hookspecs
from mmgen.errors import RecipeError
from mmgen.recipe.load import load as load_recipe
from mmgen.registry import Registry, installed

RECIPE = Path(__file__).resolve().parents[1] / "recipes/bertgen_vqa.toml"
MODULES = [
    entry.value
    for entry in importlib.metadata.distribution("mmgen-framework").entry_points
    if entry.group == hookspecs.GROUP
]
# What the main recipe needs: module -> for each error its key and what is missing.
NEEDED = {
    "mmgen_metrics": ["metrics.overlap.type: no metric is called 'captioneval'"],
    "mmgen_encoders": ["backbone.type: no backbone is called 'bert'; did you mean 'vlbert'?"],
    "mmgen_generators": ["generator.type: no generator is called 'masked'"],
    "mmgen_probes": [
        "probes.attention.type: no probe is called 'attention'",
        "probes.similarity.type: no probe is called 'similarity'",
        "probes.grounding.type: no probe is called 'grounding'",
    ],
    "mmgen_scenes": [
        "data.type: no dataset is called 'scenes'",
        "metrics.meaning.type: no metric is called 'discovery'; did you mean 'diversity'?",
    ],
    "mmgen_extractors": ["inputs.image.extractor.type: no extractor is called 'roi'"],
    "mmgen_inputs": [
        "inputs.image.type: no embedder is called 'regions'; did you mean 'vlbert_regions'?",
        "inputs.caption.type: no embedder is called 'text'",
    ],
}


@pytest.mark.parametrize("module", MODULES)
def test_the_rest_loads_and_what_the_main_recipe_needs_is_named(module):
    complete = installed()
    parts = [part for part in complete.parts if part.config.__module__.split(".")[0] != module]
    registry = Registry(tuple(parts), complete.broken)
    assert registry.broken == () and registry.conflicts() == [] and len(parts) < len(complete.parts)
    if module not in NEEDED:
        assert load_recipe(RECIPE, registry)[0].name == "bertgen_vqa"
        return
    with pytest.raises(RecipeError) as error:
        load_recipe(RECIPE, registry)
    lines = [line for line in str(error.value).splitlines() if not line.startswith("  installed ")]
    assert [line.removeprefix(f"{RECIPE}:").partition(": ")[2] for line in lines] == NEEDED[module]


def test_what_is_named_is_one_of_the_entry_points():
    assert {*NEEDED} < {*MODULES}
