"""What configs of tasks about pictures share: keys of data sets in published files, keys of heads, and checks of a
step's inputs. Needs no torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StringConstraints

import mmgen
from mmgen.configs import RelativeTo

SplitName = Annotated[str, StringConstraints(pattern=r"^\w+$")]
Dropout = Field(0.1, ge=0, lt=1, description="on what the last layer of the head reads, while learning")


class Published(mmgen.DatasetConfig):
    """What all data sets in published files share. Only the splits that are used (`train_split`,
    `validation_split`, `test_split`) are read and need files; all other paths are relative to `folder`. What they build
    is a `mmgen_vl.published.PublishedFiles`."""

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
        """The splits that exist."""
        raise NotImplementedError

    def title(self) -> str:
        """What errors about splits call the data set."""
        return self.type

    def used(self) -> tuple[str, ...]:
        """The splits that are read."""
        return tuple(
            name for name in self.names() if name in (self.train_split, self.validation_split, self.test_split)
        )

    def model_post_init(self, context: Any) -> None:
        names = self.names()
        for key in ("train_split", "test_split"):
            if (split := getattr(self, key)) not in names:
                raise ValueError(f"{key}: {self.title()} has no split '{split}'; there are: {', '.join(names)}")


class FileEach(Published):
    """Data sets with a file a split; splits may be added."""

    published: ClassVar[tuple[str, ...]] = ("train", "val", "test")

    files: Annotated[dict[SplitName, Path], RelativeTo("folder")] = Field(
        {}, description="split -> its file (Flickr30K Entities: the list of its images), instead of the published name"
    )

    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.published, *self.files)))


def without_regions(name: str, inputs: Mapping[str, mmgen.EmbedderConfig], does: str = "chooses among") -> str:
    """What is wrong where the input `name` has no regions for an objective that `does` something with them; empty where
    it has."""
    if isinstance(inputs.get(name), mmgen.FeaturesConfig):
        return ""
    return f"{does} the regions of '{name}'; the step needs such an input of type \"regions\""
