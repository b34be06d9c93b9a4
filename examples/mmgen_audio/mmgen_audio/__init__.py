"""Sounds as an input: log-mel frames of WAV files, through one linear layer."""

from pathlib import Path
from typing import Literal

import mmgen
from pydantic import Field

MMGEN_API = 4


class Audio(mmgen.EmbedderConfig):
    """WAV files as log-mel frames, some of them a slot, through one linear layer."""

    takes = "file"

    type: Literal["audio"] = "audio"
    folder: Path | None = Field(
        None, description="where <key>.wav lies; without it an example names the path of a file"
    )
    sample_rate: int = Field(16000, ge=4000, description="samples a second that every file has")
    mels: int = Field(64, ge=4, description="bands of the mel scale")
    window: float = Field(0.025, gt=0, description="seconds a frame looks at")
    hop: float = Field(0.01, gt=0, description="seconds between frames")
    frames: int = Field(10, ge=1, description="frames a slot")
    max_seconds: float = Field(10.0, gt=0, description="longer sounds are cut")

    def build(self, backbone):
        from .embedder import AudioEmbedder

        return AudioEmbedder(self, backbone)


@mmgen.hookimpl
def register_embedders():
    return [Audio]
