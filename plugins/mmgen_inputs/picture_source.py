"""Where an input gets its pictures from: the data, a folder, or a query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PIL import Image

from mmgen.errors import DataError
from mmgen.examples import ResolvedExample
from mmgen.features.images import folder_pictures, load_image
from mmgen.parts import Picture, Reader

from . import PictureInput


class PictureSource(Reader):
    """The part of a reader that finds pictures. `pictures`: those of the data by key; None until `take`."""

    def __init__(self, config: PictureInput) -> None:
        self.field, self.images = config.fields[0], config.images
        self.pictures: Mapping[str, Picture] | None = None

    def take(self, pictures: Mapping[str, Picture], required: bool) -> None:
        """Use the pictures of the data, or of the folder that the config names; a folder that is not `required` may be
        missing."""
        if self.images is not None and (required or self.images.is_dir()):
            pictures = {picture.key: picture for picture in folder_pictures(self.images)}
        self.pictures = pictures

    def shown(self, example: ResolvedExample) -> tuple[Any, ...]:
        """The values of the field: pictures, or keys. Raises DataError if there are none."""
        values = example.shown(self.field)
        if not values:
            raise DataError(
                f"example '{example.id}' has no {self.field}; its inputs are: {', '.join(example.inputs) or 'none'}",
            )
        return tuple(values)

    def picture(self, value: Any, example: str) -> Picture:
        """The picture of a value: a key of the data, or a picture. `example`: its id, for errors. Raises DataError."""
        if isinstance(value, Picture):
            return value
        if not isinstance(value, str):
            raise DataError(f"{self.field} of '{example}' is {value!r:.60}; expected a picture or its key")
        if self.pictures is None or value not in self.pictures:
            raise DataError(
                f"{self.field} of '{example}': no picture has the key '{value:.60}'; give a picture of the data, or a "
                "file"
            )
        return self.pictures[value]

    def opened(self, value: Any, example: str) -> Image.Image:
        """The image of a value. Raises DataError."""
        try:
            return load_image(self.picture(value, example))
        except (DataError, OSError) as error:
            raise DataError(f"{self.field} of '{example}': {error}") from None

    @staticmethod
    def identity(value: Any) -> object:
        """Equal for values that show equal pictures."""
        return value if isinstance(value, str) else id(value)
