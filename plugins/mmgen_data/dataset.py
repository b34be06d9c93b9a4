"""The data set of questions: joined by image with captions and pictures; what has no partner is counted and logged."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from mmgen_vision import coco
from mmgen_vision.coco import Captions, read_captions
from mmgen_vision.find_files import Finder
from mmgen_vision.published import EmptySplit, PublishedFiles, Split, counted

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.prompts import one_per_prompt
from mmgen.reading.text import join_names

from . import Csv, Jsonl, Questions, Vqa
from .columns import VQG, Columns, read_columns
from .formats import Entry, QuestionFile, read_annotations, read_jsonl, read_vqa

READERS: dict[str, Callable[[Path], QuestionFile]] = {
    "vqa": read_vqa,
    "vqg": partial(read_columns, columns=VQG),
}
MISSING = {"without_caption": "image{s} without a caption", "without_picture": "image{s} without a picture"}
LEFT_OUT = {
    "without_question": "image{s} without a question",
    "empty_questions": "empty question{s}",
    "duplicates": "repeated question{s}",
    **coco.LEFT_OUT,
}

log = logging.getLogger("mmgen")


class Files(NamedTuple):
    """The files of a split."""

    questions: Path
    captions: tuple[Path, ...]
    annotations: Path | None


class QuestionFiles(PublishedFiles):
    """Examples of a `Vqa`, `Vqg`, `Jsonl` or `Csv` config.

    id       the split and the image ("train-314392"); with `captions = "all"` also the caption's number ("...#2")
    inputs   "image": the image's key (`mmgen.files.image_key`); "caption": a tuple of captions; further inputs
             of JSONL and tables
    targets  the questions, each on one line; with `targets = "captions"` the captions, which then are not an input
    labels   "prompt": one per question, if the config has prompts. Outside of `train_split`, an example has one prompt
             (id "val-314392:2") and the facts "prompt_kind" and "prompt_value"

    `lacking` has the images (ids, for lines without an image) without a caption, a picture or a question.
    """

    advice = (
        "put the files there, or name other files in data.files and data.caption_files (caption_files = [] for no "
        "captions)"
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
            self._annotations(finder, split) if isinstance(config, Vqa) and config.has_prompts else None,
        )

    def _annotations(self, finder: Finder, split: str) -> Path:
        name = self.release.annotations.get(split)
        if name is None:
            raise DataError(
                f"data.prompts: {self.release.name} has no annotations of '{split}'; choose another split, such as "
                'test_split = "val"'
            )
        return finder.file([Path(name)], self.release.where(name))

    def describe(self) -> dict[str, Any]:
        """As for all published files, with counts of images, questions, captions and of what was left out; also the
        paper's rows and their source ("published", "published_from") where the test split is the paper's."""
        description = super().describe()
        if self.release.rows and self.config.test_split == "test" and "test" not in self.config.files:
            description |= {"published": self.release.rows, "published_from": self.release.rows_from}
        return description

    def load(self, name: str) -> Split:
        """Read a split and join it. What is left out is counted and logged once."""
        questions, caption_files, annotations = self.files[name]
        question_file = self._read(questions, annotations)
        self.licence = question_file.licence or self.licence
        captions = self._captions_of(caption_files)
        counts = Counter(
            images=len({entry.image for entry in question_file.entries} - {None}),
            questions=0,
            captions=0,
            **dict.fromkeys({**MISSING, **LEFT_OUT}, 0),
        )
        counts.update(question_file.counts + captions.counts)
        for entry in question_file.entries:
            entry.captions = entry.captions or tuple(captions.of.get(entry.image or "", ()))
        captioned = bool(caption_files) or any(entry.captions for entry in question_file.entries)
        lacking: dict[str, list[str]] = {}
        examples: list[Example] = []
        for entry in question_file.entries:
            if self._is_usable(entry, lacking, captioned):
                counts["questions"] += len(entry.questions)
                counts["captions"] += len(entry.captions)
                built = _examples_of_entry(name, entry, self.config)
                examples += (
                    one_per_prompt(built) if self.config.has_prompts and name != self.config.train_split else built
                )
        counts.update({key: len(images) for key, images in lacking.items()})
        self._check(name, examples, counts, lacking)
        if question_file.unused_columns and self.release.format == "csv":
            log.info("%s: unused columns: %s", questions, join_names(question_file.unused_columns))
        return Split(tuple(examples), counts, lacking)

    def _read(self, path: Path, annotations: Path | None) -> QuestionFile:
        if isinstance(self.config, Csv):
            return read_columns(path, Columns(self.config.columns, between=self.config.separator))
        if isinstance(self.config, Jsonl):
            return read_jsonl(path, self.config.columns)
        if isinstance(self.config, Vqa) and annotations is not None:
            kind = self.config.prompts
            values = read_annotations(annotations, kind)
            return read_vqa(path, {key: f"{kind.replace('_', ' ')}: {value}" for key, value in values.items()})
        return READERS[self.release.format](path)

    def _captions_of(self, files: tuple[Path, ...]) -> Captions:
        """The captions of the files, cached, as several splits may share them."""
        if files not in self._captions:
            self._captions = {files: read_captions(files)}
        return self._captions[files]

    def _is_usable(self, entry: Entry, lacking: dict[str, list[str]], captioned: bool) -> bool:
        """Whether an entry becomes an example; adds the entry to `lacking` for every part it lacks."""
        missing = {
            "without_question": not entry.questions,
            "without_caption": captioned and not entry.captions,
            "without_picture": self.config.images is not None and entry.image not in self.pictures_at,
        }
        for name in [name for name, true in missing.items() if true]:
            lacking.setdefault(name, []).append(entry.image or entry.id)
        return not missing["without_question"] and (self.config.missing == "keep" or not any(missing.values()))

    def _check(
        self, name: str, examples: Sequence[Example], counts: Counter, lacking: Mapping[str, Sequence[str]]
    ) -> None:
        """Log what was left out. Raises DataError if no example remains, or if parts are missing and must not be."""
        questions, caption_files, _ = self.files[name]
        incomplete, left_out = counted(counts, MISSING), counted(counts, LEFT_OUT)
        images = counted(counts, {"images": "image{s}"})
        place = f"{self.name} {name}" + (f" ({images})" if images else "")
        if not examples:
            joined = [*caption_files, *([self.config.folder / self.config.images] if self.config.images else [])]
            partners = f"; check that {join_names(joined)} has the same images" if incomplete else ""
            raise EmptySplit(
                f"{questions}: no examples remain for the split '{name}': "
                f"{incomplete or left_out or 'the file is empty'}{partners}",
                lacking,
            )
        if incomplete and self.config.missing == "error":
            raise DataError(
                f'{questions}: {incomplete}; set missing = "drop" to leave their examples out, or "keep" to keep them'
            )
        if incomplete:
            log.warning("%s: %s %s", place, "kept" if self.config.missing == "keep" else "left out", incomplete)
        if left_out:
            log.warning("%s: left out %s", place, left_out)


def _examples_of_entry(split: str, entry: Entry, config: Questions) -> Iterator[Example]:
    """The example of an entry, or one per caption."""
    base = {**entry.more} if entry.image is None else {"image": entry.image, **entry.more}
    example_id, targets = f"{split}-{entry.id}", tuple(entry.questions)
    labels = {"prompt": tuple(entry.prompts)} if config.has_prompts else {}
    if config.targets == "captions":
        if entry.captions:
            yield Example(example_id, base, entry.captions)
    elif config.captions == "all" and entry.captions:
        for number, caption in enumerate(entry.captions, 1):
            yield Example(f"{example_id}#{number}", {**base, "caption": (caption,)}, targets, labels=labels)
    else:
        texts = entry.captions[:1] if config.captions == "first" else entry.captions
        yield Example(example_id, {**base, "caption": texts} if texts else base, targets, labels=labels)
