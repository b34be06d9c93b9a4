"""What a step needs for the regions of phrases."""

import pytest
from mmgen_regions import Regions
from mmgen_tasks.flickr30k.config import PhraseRegions
from mmgen_text import Text

IMAGE = Regions(fields=("image",))


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({"caption": Text(fields=("caption",)), "image": IMAGE}, ""),
        ({"image": IMAGE}, "needs the phrases of 'caption'; give the step an input 'caption' of type \"text\""),
        (
            {"caption": Text(fields=("question",)), "image": IMAGE},
            "needs the phrases of 'caption', but that input reads 'question'; input and field must have the same name",
        ),
        (
            {"caption": Text(fields=("caption",), append_mask=True), "image": IMAGE},
            "needs the phrases of 'caption', which must end in a word; set append_mask = false for that input",
        ),
        (
            {"caption": Text(fields=("caption",))},
            "chooses among the regions of 'image'; give the step an input 'image' of type \"regions\"",
        ),
    ],
)
def test_inputs_that_do_not_fit(inputs, problem):
    assert PhraseRegions().errors(inputs) == problem
