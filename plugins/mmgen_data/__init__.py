"""Configs of published question files: VQA reversed (1.0, 2.0, OK-VQA), VQG (COCO, Flickr, Bing), and plain files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from mmgen_vision.configs import Published, SplitName
from pydantic import Field

import mmgen
from mmgen.configs import RelativeTo

from .published_sets import OKVQA, PLAIN, TABLES, VQA1, VQA2, VQG_BING, VQG_COCO, VQG_FLICKR, Release


class Questions(Published):
    """Keys of all formats: files of questions, joined by image with captions and pictures. Other paths are relative to
    `folder`. Only the splits that are used (`train_split`, `validation_split`, `test_split`) are read and need
    files."""

    missing: Literal["drop", "keep", "error"] = Field(
        "drop",
        description="what to do with images without a caption (if the data have captions) or without a file in "
        "`images` (if that is set): leave them out and count them, keep them, or raise an error",
    )
    files: Annotated[dict[SplitName, Path], RelativeTo("folder")] = Field(
        {}, description="split -> its question file, instead of the published name"
    )
    caption_files: Annotated[tuple[Path, ...] | None, RelativeTo("folder")] = Field(
        None, description="captions in COCO's format; by default the published files, [] for none"
    )
    captions: Literal["draw", "first", "all"] = Field(
        "draw",
        description="with several captions: draw one per visit (the first in evaluation), use only the first, or make "
        "one example per caption",
    )
    targets: Literal["questions", "captions"] = Field(
        "questions",
        description='the texts to generate; "captions" (of the images with questions) trains captioning, for a warm '
        "start",
    )

    @property
    def published(self) -> Release:
        """The release that defines the file names."""
        raise NotImplementedError

    @property
    def has_prompts(self) -> bool:
        """Whether its questions have prompts (`mmgen.prompts`)."""
        return False

    @property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("prompt",) if self.has_prompts else ()

    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.published.questions, *self.files]))

    def title(self) -> str:
        return self.published.name

    def build(self):
        from .dataset import QuestionFiles

        return QuestionFiles(self)


class Vqa(Questions):
    """VQA reversed: the questions about an image are the texts to generate (VQA 1.0, VQA 2.0, OK-VQA)."""

    type: Literal["vqa"] = "vqa"
    release: Literal["1.0", "2.0", "okvqa"] = Field(
        "1.0", description="the release, which defines file names, captions and published results"
    )
    prompts: Literal["none", "answer", "answer_type", "question_type"] = Field(
        "none",
        description="a prompt per question, from the annotations beside the questions: its most common answer "
        '("answer: red"), the type of its answer ("answer type: yes/no") or its own ("question type: how many")',
    )

    @property
    def has_prompts(self) -> bool:
        return self.prompts != "none"

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        if self.has_prompts and self.targets == "captions":
            raise ValueError('prompts: only questions have prompts; remove it, or set targets = "questions"')

    @property
    def published(self) -> Release:
        return {"1.0": VQA1, "2.0": VQA2, "okvqa": OKVQA}[self.release]


class Vqg(Questions):
    """VQG: natural questions about images of COCO, Flickr or Bing (Mostafazadeh et al., 2016)."""

    type: Literal["vqg"] = "vqg"
    release: Literal["coco", "flickr", "bing"] = Field(
        "coco", description="the release, which defines file names, captions and published results"
    )

    @property
    def published(self) -> Release:
        return {"coco": VQG_COCO, "flickr": VQG_FLICKR, "bing": VQG_BING}[self.release]


LABELS = ("answers", "truth", "choices", "choice", "box")


class Table(Questions):
    """Keys of your own data in tables and JSON lines. If `columns` names a label (answers, truth, choices, choice,
    box), a row is an example with this label, and "question" is an input instead of the text to generate."""

    columns: dict[str, str] = Field(
        {},
        description='"id", "image", "caption", "question" (or "questions", to generate them) or another input -> its '
        'column or key; "prompt": what the questions of a row are to fit, such as a level; a label: "answers" (one, or '
        'one per person), "truth", "choices" and "choice" (the right one, or its number from 0), "box" (x0 y0 x1 y1, '
        'from 0 to 1); "boxes": the picture\'s regions',
    )
    facts: tuple[str, ...] = Field(
        (), description="with labels: columns that are kept as facts of the examples, such as a level or a topic"
    )
    num_answers: int = Field(
        3129, ge=1, description="with answers: size of the answer vocabulary, the most common answers of `train_split`"
    )
    min_count: int = Field(1, ge=1, description="with answers: at least this many questions must have an answer")

    @property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(name for name in (*LABELS, "prompt") if name in self.columns)

    @property
    def has_prompts(self) -> bool:
        return "prompt" in self.columns

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        if self.has_prompts and (self.labels != ("prompt",) or self.targets == "captions"):
            conflict = f"label '{self.labels[0]}'" if self.labels != ("prompt",) else 'targets = "captions"'
            raise ValueError(f"columns: only questions to generate have a prompt; remove it, or the {conflict}")
        if "choice" in self.columns and "choices" not in self.columns:
            raise ValueError('columns: "choice" needs a column "choices" with the texts to choose from')
        if self.facts and not {*self.labels} & {*LABELS}:
            raise ValueError(
                f"facts: only rows with a label have facts; a label in columns is one of {', '.join(LABELS)}"
            )
        if taken := [name for name in self.facts if name in (*self.columns, *self.columns.values())]:
            raise ValueError(f"facts: '{taken[0]}' is also in columns; name it in one of them")

    def build(self):
        if not {*self.labels} & {*LABELS}:
            return super().build()
        from .labelled_rows import LabelledRows

        return LabelledRows(self)


class Jsonl(Table):
    """Your own data, one example per line, {"id": ..., "image": ..., "caption": ..., "questions": [...]}, and one file
    per split.

    A line without an id is called by its number. A list "captions" may replace "caption"; any other key is an input of
    that name, a string or a list of strings. With
    `columns = { answers = "answer" }` the examples have answers to choose from (or truths, choices, boxes).
    """

    type: Literal["jsonl"] = "jsonl"

    @property
    def published(self) -> Release:
        return PLAIN


class Csv(Table):
    """Your own data as a table with a header, one file per split: cells between commas, semicolons (Excel) or tabs.

    Rows of one id (without ids: of one image) make one example. Columns named id, image, caption and questions are
    recognised; `columns` names other columns, and the rest are ignored. With `columns = { answers = "answer" }` every
    row is a question with its answer (or truth, choices, box); rows of one id, or without ids with the same inputs, are
    the answers of several people.
    """

    type: Literal["csv"] = "csv"
    separator: str = Field("---", description='the separator of several texts in one cell; "" for one text per cell')

    @property
    def published(self) -> Release:
        return TABLES


class Archives(mmgen.DatasetConfig):
    """Examples in tar files of WebDataset's layout, in parquet, JSON or CSV files, or of a data set of the hub. They
    are copied once into Arrow files in the cache of the package `datasets`, and are never all in memory.

    Files of a tar archive with the same name up to the first dot are one example: `0001.jpg`, `0001.json`, `0001.txt`.
    Its columns are the keys of the JSON object, and "txt", the text.
    """

    type: Literal["archives"] = "archives"

    hub: str | None = Field(None, description="a data set of the hub, or its folder; the keys below are its splits")
    subset: str | None = Field(None, description="of a data set of the hub: its configuration")
    revision: str | None = Field(None, description="of a data set of the hub: its commit or tag")
    train: str = Field(
        description="files of the training examples: a path, a pattern, or a URL, with numbers as {000..127}; "
        "photos-{000..127}.tar"
    )
    val: str | None = Field(None, description="files of the examples for the validation loss")
    test: str | None = Field(None, description="files of the examples that steps are scored on")
    columns: Mapping[str, str] = Field(
        {}, description='inputs of an example -> columns with their values; "a.b" is column b of table a'
    )
    targets: str | None = Field("txt", description="the column with the text to learn, or a list of texts")
    key: str = Field(
        "key",
        description='the column with the id of an example; "" numbers the rows: train-0, train-1. It is also the key '
        'of the picture, unless `columns` has one for "image". In tar files the names are the keys',
    )
    picture: str = Field(
        "image", description="the column with the bytes of the picture; by default the only one that has pictures"
    )

    @classmethod
    def pictures_of(cls, source: str) -> "Archives | None":
        return cls(train=source) if source.endswith((".tar", ".parquet")) or "://" in source else None

    def build(self):
        from .archives import ArchiveDataset

        return ArchiveDataset(self)


@mmgen.hookimpl
def register_datasets():
    return [Vqa, Vqg, Jsonl, Csv, Archives]
