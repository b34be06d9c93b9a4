"""The data set: questions joined by image with captions and pictures; what finds no partner is counted and said."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from mmgen_vl.coco import Captions, read_captions
from mmgen_vl.published import PublishedFiles, Split, counted

from mmgen.errors import DataError
from mmgen.reading.finding import Finder
from mmgen.reading.text import join_names
from mmgen.tensors import Example

from . import Csv, Questions
from .columns import VQG, Columns, read_columns
from .formats import Entry, Read, read_jsonl, read_vqa

READERS: dict[str, Callable[[Path], Read]] = {
    "vqa": read_vqa,
    "vqg": partial(read_columns, columns=VQG),
    "jsonl": read_jsonl,
}
LACKS = {"without_caption": "image{s} without a caption", "without_picture": "image{s} without a picture"}
ODD = {
    "without_question": "image{s} without a question",
    "empty_questions": "empty question{s}",
    "duplicates": "repeated question{s}",
    "empty_captions": "empty caption{s}",
    "duplicate_captions": "repeated caption{s}",
}

log = logging.getLogger("mmgen")


class Files(NamedTuple):
    """The files of a split."""

    questions: Path
    captions: tuple[Path, ...]


class QuestionFiles(PublishedFiles):
    """Examples of a `Vqa`, `Vqg`, `Jsonl` or `Csv` config.

    id       the split and the image ("train-314392"); with `captions = "all"` the caption's number too ("...#2")
    inputs   "image": the image's key (`mmgen.files.image_key`); "caption": a tuple of captions; further inputs
             of JSONL and tables
    targets  the questions, each on one line; with `write = "captions"` the captions, which are no input then

    It lacks the images (ids, where a line names no image) without a caption, without a picture, without a question.
    """

    advice = (
        "put them there, or name others in data.files and data.caption_files (caption_files = [] does without captions)"
    )
    config: Questions

    def __init__(self, config: Questions) -> None:
        self.release = config.published
        self.name, self.licence, self.source = self.release.name, self.release.licence, self.release.where("")
        super().__init__(config)
        self._captions: dict[tuple[Path, ...], Captions] = {}

    def find(self, finder: Finder, split: str) -> Files:
        config, release = self.config, self.release
        names = [config.files[split]] if split in config.files else [*map(Path, release.questions[split])]
        published = (Path(release.captions[split]),) if split in release.captions else ()
        captions = published if config.caption_files is None else config.caption_files
        return Files(
            finder.file(names, release.where(names[0].name)),
            tuple(finder.file([name], release.where(name.name)) for name in captions),
        )

    def describe(self) -> dict[str, Any]:
        """Its counts are of images, questions, captions, and of what was odd. Published rows, where the evaluated split
        is the paper's, and published_from, what they are, stand beside."""
        described = super().describe()
        if self.release.rows and self.config.test_split == "test" and "test" not in self.config.files:
            described |= {"published": self.release.rows, "published_from": self.release.rows_from}
        return described

    def load(self, name: str) -> Split:
        """Read a split and join it. What is odd is counted, and said once."""
        questions, caption_files = self.files[name]
        read = self._read(questions)
        self.licence = read.licence or self.licence
        captions = self._captions_of(caption_files)
        counts = Counter(
            images=len({entry.image for entry in read.entries} - {None}),
            questions=0,
            captions=0,
            **dict.fromkeys({**LACKS, **ODD}, 0),
        )
        counts.update(read.counts + captions.counts)
        for entry in read.entries:
            entry.captions = entry.captions or tuple(captions.of.get(entry.image or "", ()))
        captioned = bool(caption_files) or any(entry.captions for entry in read.entries)
        lacking: dict[str, list[str]] = {}
        examples: list[Example] = []
        for entry in read.entries:
            if self._whole(entry, lacking, captioned):
                counts["questions"] += len(entry.questions)
                counts["captions"] += len(entry.captions)
                examples += _examples(name, entry, self.config)
        counts.update({key: len(images) for key, images in lacking.items()})
        self._check(name, examples, counts)
        if read.passed and self.release.format == "csv":
            log.info("%s: columns that nobody reads: %s", questions, join_names(read.passed))
        return Split(tuple(examples), counts, lacking)

    def _read(self, path: Path) -> Read:
        if isinstance(self.config, Csv):
            return read_columns(path, Columns(self.config.columns, between=self.config.separator))
        return READERS[self.release.format](path)

    def _captions_of(self, files: tuple[Path, ...]) -> Captions:
        """Read once, however many splits they are for."""
        if files not in self._captions:
            self._captions = {files: read_captions(files)}
        return self._captions[files]

    def _whole(self, entry: Entry, lacking: dict[str, list[str]], captioned: bool) -> bool:
        """Whether an entry becomes an example; notes what it lacks."""
        lacks = {
            "without_question": not entry.questions,
            "without_caption": captioned and not entry.captions,
            "without_picture": self.config.images is not None and entry.image not in self.pictures_at,
        }
        for name in [name for name, true in lacks.items() if true]:
            lacking.setdefault(name, []).append(entry.image or entry.id)
        return not lacks["without_question"] and (self.config.missing == "keep" or not any(lacks.values()))

    def _check(self, name: str, examples: Sequence[Example], counts: Counter) -> None:
        """Say what was odd; raise DataError when it is too much."""
        questions, caption_files = self.files[name]
        lacking, odd = counted(counts, LACKS), counted(counts, ODD)
        images = counted(counts, {"images": "image{s}"})
        place = f"{self.name} {name}" + (f" ({images})" if images else "")
        if not examples:
            joined = [*caption_files, *([self.config.folder / self.config.images] if self.config.images else [])]
            partners = f"; are {join_names(joined)} of other images?" if lacking else ""
            raise DataError(
                f"{questions}: no example is left for the split '{name}': "
                f"{lacking or odd or 'the file is empty'}{partners}"
            )
        if lacking and self.config.missing == "error":
            raise DataError(f'{questions}: {lacking}; set missing = "drop" to leave those out, or "keep"')
        if lacking:
            log.warning("%s: %s %s", place, "kept" if self.config.missing == "keep" else "left out", lacking)
        if odd:
            log.warning("%s: left out %s", place, odd)


def _examples(split: str, entry: Entry, config: Questions) -> Iterator[Example]:
    """The example of an entry, or one a caption."""
    base = {**entry.more} if entry.image is None else {"image": entry.image, **entry.more}
    own, targets = f"{split}-{entry.id}", tuple(entry.questions)
    if config.targets == "captions":
        if entry.captions:
            yield Example(own, base, entry.captions)
    elif config.captions == "all" and entry.captions:
        for number, caption in enumerate(entry.captions, 1):
            yield Example(f"{own}#{number}", {**base, "caption": (caption,)}, targets)
    else:
        texts = entry.captions[:1] if config.captions == "first" else entry.captions
        yield Example(own, {**base, "caption": texts} if texts else base, targets)
