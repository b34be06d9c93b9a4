"""The tasks' data sets in the formats that they are published in: the keys that recipes have for them."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StringConstraints

import mmgen
from mmgen.configs import RelativeTo

SplitName = Annotated[str, StringConstraints(pattern=r"^\w+$")]


class Published(mmgen.DatasetConfig):
    """What all published data sets share. Only the splits that are used (`train`, `validate_on`, `evaluate`) are read
    and need files; all other paths are relative to `folder`."""

    folder: Path = Field(description="where the files lie, as they come out of the published archives")
    images: Annotated[Path | None, RelativeTo("folder")] = Field(
        None, description="folder of raw images, searched with its subfolders"
    )
    missing: Literal["drop", "keep", "error"] = Field(
        "drop",
        description="examples whose image has no file in `images`, where that is given: left out and counted, kept, or "
        "an error",
    )

    def names(self) -> tuple[str, ...]:
        """The splits that there are."""
        raise NotImplementedError

    def used(self) -> tuple[str, ...]:
        """The splits that are read."""
        return tuple(name for name in self.names() if name in (self.train, self.validate_on, self.evaluate))

    def model_post_init(self, context: Any) -> None:
        for key in ("train", "evaluate"):
            if getattr(self, key) not in self.names():
                raise ValueError(
                    f"{key}: {self.type} has no split '{getattr(self, key)}'; there are: {', '.join(self.names())}"
                )


class FileEach(Published):
    """Data sets with a file a split; splits may be added."""

    published: ClassVar[tuple[str, ...]] = ("train", "val", "test")

    files: Annotated[dict[SplitName, Path], RelativeTo("folder")] = Field(
        {}, description="split -> its file (Flickr30K Entities: the list of its images), instead of the published name"
    )

    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.published, *self.files)))
