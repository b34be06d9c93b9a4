"""Configs shared by tasks about pictures: keys of published files and of heads, checks of a step's inputs. No torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StringConstraints

import mmgen
from mmgen.configs import RelativeTo

SplitName = Annotated[str, StringConstraints(pattern=r"^\w+$")]
By = Field(
    (),
    description='facts of examples, such as "form" of drawn data: every value of these facts has a column of accuracy',
)
Dropout = Field(0.1, ge=0, lt=1, description="dropout on the input of the head's last layer during training")


class Published(mmgen.DatasetConfig):
    """Base config of data sets in published files. Only the splits in use (`train_split`, `validation_split`,
    `test_split`) are read and need files; all other paths are relative to `folder`. `build` returns a
    `mmgen_vision.published.PublishedFiles`."""

    folder: Path = Field(description="folder of the files, with the layout of the published archives")
    images: Annotated[Path | None, RelativeTo("folder")] = Field(
        None, description="folder of raw images, searched with its subfolders"
    )
    missing: Literal["drop", "keep", "error"] = Field(
        "drop",
        description="what to do with examples whose image has no file in `images` (if set): drop and count them, keep "
        "them, or raise an error",
    )

    def names(self) -> tuple[str, ...]:
        """The names of all splits."""
        raise NotImplementedError

    def title(self) -> str:
        """The name of the data set in errors about splits."""
        return self.type

    def used(self) -> tuple[str, ...]:
        """The splits in use."""
        return tuple(
            name for name in self.names() if name in (self.train_split, self.validation_split, self.test_split)
        )

    def model_post_init(self, context: Any) -> None:
        names = self.names()
        for key in ("train_split", "test_split"):
            if (split := getattr(self, key)) not in names:
                raise ValueError(f"{key}: {self.title()} has no split '{split}'; choose from: {', '.join(names)}")


class FileEach(Published):
    """Data sets with one file per split; recipes may add splits."""

    published: ClassVar[tuple[str, ...]] = ("train", "val", "test")

    files: Annotated[dict[SplitName, Path], RelativeTo("folder")] = Field(
        {}, description="split -> its file (Flickr30K Entities: its list of images), instead of the published name"
    )

    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.published, *self.files)))


def without_regions(name: str, inputs: Mapping[str, mmgen.EmbedderConfig], does: str = "chooses among") -> str:
    """The error message if the input `name` has no regions for an objective; else "". `does`: what the objective does
    with the regions."""
    config = inputs.get(name)
    if isinstance(config, mmgen.FeaturesConfig) or (config is not None and config.hides == "regions"):
        return ""
    return f"{does} the regions of '{name}'; give the step an input '{name}' of type \"regions\""
