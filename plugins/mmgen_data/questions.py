"""Data sets of questions to write: questions about images, joined with captions; VQG (Mostafazadeh et al., 2016)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from mmgen_vision.coco import CaptionRow, join_captions
from mmgen_vision.configs import Published
from pydantic import Field

from mmgen.configs import RelativeTo
from mmgen.errors import DataError
from mmgen.examples import Example

from .releases import VQG, Release, where_captions_are
from .tables import read_table

if TYPE_CHECKING:
    from mmgen_vision.published import Files, Finder, PublishedData


@dataclass
class Entry:
    """The questions and captions of one image. `texts`: (question, its prompt, or "")."""

    image: str | None
    texts: list[tuple[str, str]] = field(default_factory=list)
    captions: list[str] = field(default_factory=list)
    inputs: dict[str, Any] = field(default_factory=dict)  # further inputs

    def join(self, row: Entry, place: str) -> Iterator[str]:
        """Adds what a row says, and gives why questions of it are left out. Raises DataError for another image."""
        if row.image != self.image:
            raise DataError(f"{place}: an earlier row with the same id has the image {self.image}; use one per id")
        known = {*self.texts}
        for text in row.texts:
            if not text[0] or text in known:
                yield "repeated question{s}" if text[0] else "empty question{s}"
            else:
                self.texts.append(text)
        self.captions += [caption for caption in row.captions if caption not in self.captions]
        for name, texts in row.inputs.items():
            self.inputs[name] = tuple(dict.fromkeys((*self.inputs.get(name, ()), *texts)))


class Questions(Published):
    """Keys of data sets with questions to write."""

    caption_files: Annotated[tuple[Path, ...] | None, RelativeTo("folder")] = Field(
        None,
        description="captions in COCO's format; by default the published files, [] for none. If the data have "
        "captions, images without one are left out and counted",
    )

    @property
    def has_prompts(self) -> bool:
        """Whether its questions have prompts (`mmgen.prompts`)."""
        return False

    @property
    def writes_captions(self) -> bool:
        """Whether the captions are the targets."""
        return getattr(self, "targets", "") == "captions"

    @property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("prompt",) if self.has_prompts else ()

    def find_captions(self, finder: Finder, published: Sequence[str] = ()) -> list[Path]:
        """The files of captions of a split. `published`: the names of the published ones."""
        names = published if self.caption_files is None else self.caption_files
        return [finder.file(name, where=where_captions_are(Path(name).name)) for name in names]

    def entries(self, data: PublishedData, split: str) -> Iterable[tuple[str, str, Entry]]:
        """(place, id, what it says) of every row of a split."""
        raise NotImplementedError

    def read(self, data: PublishedData, split: str) -> Iterator[Example | str]:
        """Examples `SPLIT-ID`, of images with a question.

        inputs   "image": its key; "caption": a tuple of captions; further inputs of tables
        targets  the questions, each on one line; or the captions, which then are not an input
        labels   "prompt": one per question. Outside of `train_split`, an example has one prompt (id "val-314392:2")
        """
        entries: dict[str, Entry] = {}
        for place, name, row in self.entries(data, split):
            yield from entries.setdefault(name, Entry(row.image)).join(row, place)
        rows = data.rows(split, "captions", CaptionRow, "annotations")
        captions, left_out = data.once(f"captions {data.files[split]['captions']}", lambda: join_captions(rows))
        yield from left_out
        for entry in entries.values():
            entry.captions = entry.captions or captions.get(entry.image or "", [])
        data.once(f"captioned {split}", lambda: bool(captions) or any(e.captions for e in entries.values()))
        for name, entry in entries.items():
            if entry.texts:
                yield from self._examples(f"{split}-{name}", entry, split)
            else:
                yield "image{s} without a question"

    def _examples(self, name: str, entry: Entry, split: str) -> Iterator[Example | str]:
        inputs = {**({"image": entry.image} if entry.image else {}), **entry.inputs}
        captions, targets = tuple(entry.captions), tuple(text for text, _ in entry.texts)
        if self.writes_captions:
            yield Example(name, inputs, captions) if captions else "image{s} without a caption"
            return
        labels = {"prompt": tuple(prompt for _, prompt in entry.texts)} if self.has_prompts else {}
        example = Example(name, {**inputs, "caption": captions} if captions else inputs, targets, labels=labels)
        if not self.has_prompts or split == self.train_split:
            yield example
            return
        from mmgen_vision.prompts import one_per_prompt

        yield from one_per_prompt([example])

    def lacks(self, data: PublishedData, split: str, example: Example) -> str:
        expected = not self.writes_captions and data.once(f"captioned {split}", bool)
        return "without a caption" if expected and "caption" not in example.inputs else ""


class ReleasedQuestions(Questions):
    """Keys of published questions."""

    targets: Literal["questions", "captions"] = Field(
        "questions",
        description='the texts to generate; "captions" (of the images with questions) trains captioning, for a warm '
        "start",
    )

    @property
    def released(self) -> Release:
        """The release that defines the file names."""
        raise NotImplementedError

    sources: ClassVar[Path | None] = Path(__file__).with_name("sources.toml")

    @property
    def about(self):  # type: ignore[override]
        return self.released.about

    @property
    def source_set(self):  # type: ignore[override]
        return self.about.name.removesuffix(".0").replace(" ", "").replace("-", "").lower()  # "VQA 2.0": vqa2

    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.released.years, *self.files)))

    def find(self, finder: Finder, split: str) -> Files:
        release = self.released
        questions = finder.files(split, *release.files(split, *release.questions))
        return {"questions": questions, "captions": self.find_captions(finder, release.files(split, release.captions))}

    def described(self, data: PublishedData) -> Mapping[str, Any]:
        """The paper's rows and their source where the test split is the paper's."""
        if self.targets != "questions" or self.test_split != "test" or "test" in self.files or not self.released.rows:
            return {}
        other = ""
        if self.images is not None:
            splits = [data.load(split) for split in data.splits()]
            used = sum(len(examples) for examples, _ in splits)
            count = used + sum(counts["example{s} without a picture"] for _, counts in splits)
            other = f"; here other features, {used:,} of {count:,} pictures"
        return {"published": self.released.rows, "published_from": self.released.rows_from + other}


class Vqg(ReleasedQuestions):
    """VQG: natural questions about images of COCO, Flickr or Bing (Mostafazadeh et al., 2016)."""

    type: Literal["vqg"] = "vqg"
    release: Literal["coco", "flickr", "bing"] = Field(
        "coco", description="the release, which defines file names, captions and published results"
    )

    @property
    def released(self) -> Release:
        return VQG[self.release]

    def entries(self, data: PublishedData, split: str) -> Iterable[tuple[str, str, Entry]]:
        columns = {"image": "image_id", "questions": "questions"}
        for path in data.files[split]["questions"]:
            for place, row in read_table(path, columns, (*columns,)):
                if not row.image:
                    raise DataError(f"{place}: has no image_id")
                yield place, row.image, Entry(row.image, row.prompted, row.captions)
