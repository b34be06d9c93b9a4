"""What a text looked at, on the page."""

from mmgen.report.attention import AttentionPanel
from mmgen.report.cards import compact
from mmgen.report.frames import Frame


def test_regions_with_attention_are_placed_on_their_picture():
    panel = AttentionPanel(boxes={"image": [[0, 0, 1, 1], [0, 0, 1, 1]]}, pictures={"image": [0, 1]})
    shots = (("a", 100, 100), ("b", 100, 100))
    assert compact(panel, Frame(shots))["boxes"] == {"image": [[0, 0, 0.49, 1], [0.51, 0, 1.0, 1]]}
    assert compact(panel, Frame(shots[:1]))["boxes"] == {"image": [[0, 0, 1, 1], [0, 0, 1, 1]]}
