"""Question files as they are published: VQA reversed (1.0, 2.0, OK-VQA), VQG (COCO, Flickr, Bing), and plain files."""

from pathlib import Path
from typing import Annotated, Literal

from mmgen_vl.configs import Published, SplitName
from pydantic import Field

import mmgen
from mmgen.configs import RelativeTo

from .published import OKVQA, PLAIN, TABLES, VQA1, VQA2, VQG_BING, VQG_COCO, VQG_FLICKR, Release


class Questions(Published):
    """What all formats share: files of questions, joined by image with captions and pictures. All other paths are
    relative to `folder`. Only the splits that are used (`train_split`, `validation_split`, `test_split`) are read
    and need files."""

    missing: Literal["drop", "keep", "error"] = Field(
        "drop",
        description="images without a caption (where there are any, in `caption_files` or in the questions' own file), "
        "or without a file in `images` (where that is given): left out and counted, kept, or an error",
    )
    files: Annotated[dict[SplitName, Path], RelativeTo("folder")] = Field(
        {}, description="split -> its file of questions, instead of the published name"
    )
    caption_files: Annotated[tuple[Path, ...] | None, RelativeTo("folder")] = Field(
        None, description="captions in COCO's format; by default the published ones, [] for none"
    )
    captions: Literal["draw", "first", "all"] = Field(
        "draw",
        description="of several captions: draw one a visit (the first in evaluation), only the first, or each an input "
        "of its own",
    )
    targets: Literal["questions", "captions"] = Field(
        "questions",
        description="what the targets are; with captions (of the images that have questions) an input learns to say "
        "what it sees: a warm start",
    )

    @property
    def published(self) -> Release:
        """The release that the file names are from."""
        raise NotImplementedError

    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.published.questions, *self.files]))

    def title(self) -> str:
        return self.published.name

    def build(self):
        from .dataset import QuestionFiles

        return QuestionFiles(self)


class Vqa(Questions):
    """VQA reversed: the questions of an image are what to write about it (VQA 1.0, VQA 2.0, OK-VQA)."""

    type: Literal["vqa"] = "vqa"
    release: Literal["1.0", "2.0", "okvqa"] = Field(
        "1.0", description="whose file names, captions and published results"
    )

    @property
    def published(self) -> Release:
        return {"1.0": VQA1, "2.0": VQA2, "okvqa": OKVQA}[self.release]


class Vqg(Questions):
    """VQG: natural questions about images of COCO, Flickr or Bing (Mostafazadeh et al., 2016)."""

    type: Literal["vqg"] = "vqg"
    release: Literal["coco", "flickr", "bing"] = Field(
        "coco", description="whose file names, captions and published results"
    )

    @classmethod
    def exporters(cls):
        from .export import VqgTables

        return (VqgTables(),)

    @property
    def published(self) -> Release:
        return {"coco": VQG_COCO, "flickr": VQG_FLICKR, "bing": VQG_BING}[self.release]


class Jsonl(Questions):
    """Your own: a line an example, {"id": ..., "image": ..., "caption": ..., "questions": [...]}, a file a split.

    "captions", a list, may stand for "caption"; any other key is an input under its own name, a text or a list of them.
    """

    type: Literal["jsonl"] = "jsonl"

    @property
    def published(self) -> Release:
        return PLAIN


class Csv(Questions):
    """Your own, as a table with a header: CSV, or TSV where the file's name says so, a file a split.

    Rows of one id (where there is no id: of one image) make one example. Columns called id, image, caption and
    questions are read by themselves; `columns` names others.
    """

    type: Literal["csv"] = "csv"
    columns: dict[str, str] = Field(
        {},
        description='"id", "image", "caption", "questions" or another input -> its column; other columns are passed '
        "over, and named in a line",
    )
    separator: str = Field(
        "---", description='what stands between several texts in one cell; "" where none has several'
    )

    @property
    def published(self) -> Release:
        return TABLES


@mmgen.hookimpl
def register_datasets():
    return [Vqa, Vqg, Jsonl, Csv]
