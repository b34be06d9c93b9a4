"""Data sets: published questions (VQA, VQG), your own tables, and archives or the hub, which need not fit memory."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

import mmgen

from .own import Table
from .questions import Vqg
from .vqa import Vqa


class Archives(mmgen.DatasetConfig):
    """Examples in tar files of WebDataset's layout, in parquet or JSON files, or of a data set of the hub. They
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
    return [Vqa, Vqg, Table, Archives]
