"""A box as words, in tenths of the picture's sides: "left2 top4 right3 bottom6".

A word says which side it is of, so that an encoder reads it wherever it stands.
"""

from collections.abc import Iterator, Sequence

TENTHS = 10
SIDES = ("left", "top", "right", "bottom")  # x0, y0, x1, y1


def box_in_words(box: Sequence[float]) -> str:
    """A box (x0, y0, x1, y1), relative to the picture's size, as four words."""
    steps = (min(max(int(TENTHS * number), 0), TENTHS - 1) for number in box)
    return " ".join(f"{side}{step}" for side, step in zip(SIDES, steps, strict=True))


def all_words() -> Iterator[str]:
    """The 40 words of boxes, side by side."""
    return (f"{side}{step}" for side in SIDES for step in range(TENTHS))
