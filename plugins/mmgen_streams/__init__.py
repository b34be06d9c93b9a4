"""The config of archives (tar, parquet) at any place: pictures to extract, and a data set that streams its examples.

Tar files have WebDataset's layout. Places are on this machine or in an object store.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

import mmgen

ENDINGS = (".tar", ".parquet")


class Archives(mmgen.DatasetConfig):
    """Examples in tar files or parquet files. The training examples are read in the order of the files, again and
    again, and are never all in memory; steps set `training.updates`.

    Files of a tar archive with the same name up to the first dot are one example: `0001.jpg`, `0001.json`, `0001.txt`.
    Its fields are the keys of the JSON object, and "txt", the text. The fields of a parquet file are its columns.
    """

    type: Literal["archives"] = "archives"
    streams: ClassVar[bool] = True

    train: str = Field(
        description="files of the training examples: a path, a pattern, or a URL, with numbers as {000..127}; "
        "photos-{000..127}.tar"
    )
    val: str | None = Field(
        None, description="files of the examples for the validation loss; they are read into memory"
    )
    test: str | None = Field(None, description="files of the examples that steps are scored on, read into memory")
    columns: Mapping[str, str] = Field({}, description="inputs of an example -> fields that have their values")
    targets: str | None = Field("txt", description="the field with the text to learn, or a list of texts")
    key: str = Field("key", description="of parquet files: the column with the key of the example and of its picture")
    picture: str = Field(
        "image", description="of parquet files: the column with the picture: bytes, a path, or a table of both"
    )

    @classmethod
    def pictures_of(cls, source: str) -> "Archives | None":
        if source.endswith(ENDINGS) or "://" in source:
            return cls(train=source)
        return None

    def build(self):
        from .dataset import StreamDataset

        return StreamDataset(self)


@mmgen.hookimpl
def register_datasets():
    return [Archives]
