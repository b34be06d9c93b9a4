"""The page of keys of recipes."""

from mmgen.recipe.reference import reference
from mmgen.registry import installed


def test_the_page_has_every_key_with_its_bounds_and_default():
    page = reference(installed())
    for part in (part for part in installed().parts if part.config.in_recipes):
        section = page.split(f'### type = "{part.name}"')
        assert any(
            all(f"| `{name}` |" in text.split("### ")[0] for name in part.config.model_fields if name != "type")
            for text in section[1:]
        )
    assert (
        "| `batch_size` | whole number, at least 1 | `128` | pairs (one input, one target) per optimiser update |"
        in page
    )
    assert '| `precision` | `"auto"`, `"fp32"`, `"bf16"` | `"auto"` |' in page
    assert "| `extractor` | a table: extractor |  | computes the features from raw images |" in page
    assert "| `name` | string | required | names the run folder |" in page
    assert 'such as "\\*.pooler.\\*"; names are' in page  # stars do not mean emphasis
