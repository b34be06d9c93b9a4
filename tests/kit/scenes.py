"""A small data set of drawn scenes; mentions as numbers."""

from mmgen_scenes import Scenes

SMALL = Scenes(train_size=300, val_size=40, test_size=120)


def mark_mentions(text, mentions):
    """A text with numbers in place of its mentions: "what is [2] looking at?"."""
    for start, end, (thing,) in sorted(mentions, reverse=True):
        text = f"{text[:start].removesuffix('the ')}[{thing}]{text[end:]}"
    return text
