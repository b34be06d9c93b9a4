"""Pictures beside examples and texts, as notebooks show them.

All texts are escaped; pictures are small JPEGs inside the HTML, so a saved notebook needs no files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from ..errors import MmgenError
from ..examples import Example, Generation, Prediction
from ..parts import Dataset, Picture
from ..progress import html_table, table
from .pictures import find, thumbnail

SIDE = 200  # longer side of a picture, in pixels


def picture_tags(pictures: Sequence[Picture], side: int = SIDE) -> str:
    """Pictures as HTML, side by side. A picture that cannot be read is left out."""
    tags = []
    for picture in pictures:
        try:
            uri, width, height = thumbnail(picture, side)
        except (MmgenError, OSError, ValueError):
            continue
        tags.append(f'<img src="{uri}" width="{width}" height="{height}" alt="{escape(picture.key)}">')
    return "".join(tags)


@dataclass(frozen=True)
class PictureSheet:
    """Examples of a data set with their pictures, and with texts or predictions about them:

        PictureSheet(dataset, test[:4], run.generate(test[:4]))

    dataset   has the pictures
    examples  what is shown, in this order
    results   per example, its texts, best first, or its predictions; empty: the examples alone
    """

    dataset: Dataset
    examples: Sequence[Example]
    results: Sequence[Sequence[Generation | Prediction]] = ()

    def __repr__(self) -> str:
        return f"<PictureSheet of {len(self.examples)} examples>"

    def __str__(self) -> str:
        return "\n\n".join(table(rows, texts=2) for _, rows in self._example_rows())

    def _repr_html_(self) -> str:
        pictures, note = find(self.dataset, self.examples)
        blocks = [
            f"<div>{picture_tags(pictures.get(example.id, ()))}\n{html_table(rows)}</div>"
            for example, rows in self._example_rows()
        ]
        return "\n".join([*blocks, *[f"<p>{escape(note)}</p>"] * bool(note)])

    def _example_rows(self) -> Iterator[tuple[Example, list[list[str]]]]:
        """Each example with the rows of its table, the first the header."""
        for place, example in enumerate(self.examples):
            results = self.results[place] if self.results else ()
            rows = [[f"text, score {result.score:.2f}", f"{result.value!s:.200}"] for result in results]
            yield example, [["example", example.id], *example.cells(), *rows]
