"""Configs shared by tasks about pictures: published data sets, paths of files, metrics, checks of inputs. No torch."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from pydantic import Field, StringConstraints

import mmgen
from mmgen.configs import Download, RelativeTo
from mmgen.examples import Example, Scores

if TYPE_CHECKING:
    from .published import Files, Finder, PublishedData

SplitName = Annotated[str, StringConstraints(pattern=r"^\w+$")]
Paths = Path | tuple[Path, ...]
Dropout = Field(0.1, ge=0, lt=1, description="dropout on the input of the head's last layer during training")


class About(NamedTuple):
    """A data set's name in its paper, the licence of its files, and where to get them."""

    name: str
    licence: str
    source: str


class Published(mmgen.DatasetConfig):
    """Base config of data sets in published files. Only the splits in use (`train_split`, `validation_split`,
    `test_split`) are read and need files; all other paths are relative to `folder`.

    A subclass says `find` and `read`; `data` is the `mmgen_vision.published.PublishedData` that it builds.
    """

    about: ClassVar[About]
    published: ClassVar[tuple[str, ...]] = ("train", "val", "test")  # splits
    below: ClassVar[tuple[str, ...]] = ("annotations",)  # subfolders that may hold the files too
    source_set: ClassVar[str] = ""  # its name in `sources`

    folder: Path = Field(description="folder of the files, with the layout of the published archives")
    images: Annotated[Path | None, RelativeTo("folder")] = Field(
        None,
        description="folder of raw images, searched with its subfolders; examples without one are left out and "
        'counted. Of published pictures that are fetched: "images", or "images-1500" for 1,500 of them',
    )
    held_out: Annotated[Path | None, RelativeTo("folder")] = Field(
        None,
        description="images to test on, one number per line (a minival): `train_split` leaves out their examples, any "
        "other split that has some of them has only theirs",
    )
    files: Annotated[dict[SplitName, Paths], RelativeTo("folder")] = Field(
        {}, description="split -> its file, or files, instead of the published name"
    )

    def names(self) -> tuple[str, ...]:
        """The names of all splits."""
        return tuple(dict.fromkeys((*self.published, *self.files)))

    def named_files(self, split: str) -> tuple[Path, ...]:
        """The files of a split that the recipe names."""
        return as_paths(self.files.get(split, ()))

    def find(self, finder: "Finder", split: str) -> "Files":
        """The files of a split, by what they are; the first lists its examples."""
        raise NotImplementedError

    def read(self, data: "PublishedData", split: str) -> Iterator[Example | str]:
        """The examples of a split, and for every row left out why: "caption{s} without a phrase". Raises DataError."""
        raise NotImplementedError

    def lacks(self, data: "PublishedData", split: str, example: Example) -> str:
        """What an example lacks beside a picture, such as "without a caption"; by default nothing."""
        return ""

    def boxes(self, data: "PublishedData", key: str) -> tuple[Sequence[Any], Sequence[str] | None] | None:
        """The boxes of a picture and their names, as far as known, or None without boxes."""
        return None

    def vocabularies(self, data: "PublishedData") -> Mapping[str, tuple[str, ...]]:
        """As `mmgen.parts.Dataset.vocabularies`."""
        return {}

    def described(self, data: "PublishedData") -> Mapping[str, Any]:
        """What `describe` says beside name, examples, counts, licence and source."""
        return {}

    def build(self):
        from .published import PublishedData

        return PublishedData(self)

    def download(self):
        from .published import is_complete

        return Download(self.source_set, self.folder, self.images, is_complete(self)) if self.source_set else None

    def model_post_init(self, context: Any) -> None:
        for key in ("train_split", "test_split"):
            if (split := getattr(self, key)) not in self.names():
                raise ValueError(
                    f"{key}: {self.about.name} has no split '{split}'; choose from: {', '.join(self.names())}"
                )


class ScoringConfig(mmgen.MetricConfig):
    """A metric that needs nothing but its config. A subclass has `score`, and may have `references`, as
    `mmgen.parts.Metric`."""

    def prepare(self, pictures: Any, device: Any) -> None:
        """Nothing: see `mmgen.parts.Metric.prepare`."""

    def references(self, examples: Sequence[Example]) -> Scores | None:
        return None

    def build(self):
        return self


def as_paths(value: Paths) -> tuple[Path, ...]:
    """The value of a key that takes a path or several, as a tuple."""
    return (value,) if isinstance(value, Path) else value


def without_regions(name: str, inputs: Mapping[str, mmgen.EmbedderConfig], does: str = "chooses among") -> str:
    """The error message if the input `name` has no regions for an objective; else "". `does`: what the objective does
    with the regions."""
    config = inputs.get(name)
    if isinstance(config, mmgen.FeaturesConfig) or (config is not None and config.hides == "regions"):
        return ""
    return f"{does} the regions of '{name}'; give the step an input '{name}' of type \"regions\""
