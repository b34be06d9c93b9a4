"""The embedder: log-mel frames are computed in loader workers; one linear layer is trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from mmgen.errors import DataError
from mmgen.examples import ResolvedExample
from mmgen.features.embedder import word_scale
from mmgen.parts import Backbone, Embedder, File, Reader
from mmgen.tensors import Segment
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers.audio_utils import mel_filter_bank

from . import Audio
from .waves import read

FLOOR = 1e-10  # of the power in a band: silence


class LogMel:
    """Samples -> frames (F, mels): the logarithm (to 10) of the power in each band, -10 in silence.

    The short-time Fourier transform has a Hann window; bands are triangles, evenly spaced on the mel scale (HTK's).
    """

    def __init__(self, config: Audio) -> None:
        self.window = torch.hann_window(round(config.window * config.sample_rate))
        self.hop = round(config.hop * config.sample_rate)
        self.size = 1 << (len(self.window) - 1).bit_length()  # of the transform: the next power of two
        bands = mel_filter_bank(self.size // 2 + 1, config.mels, 0.0, config.sample_rate / 2, config.sample_rate)
        self.bands = torch.from_numpy(bands).float()  # (frequencies, mels)

    def __call__(self, samples: Tensor) -> Tensor:
        options = {"hop_length": self.hop, "win_length": len(self.window), "window": self.window}
        spectrum = torch.stft(samples, self.size, **options, center=True, pad_mode="constant", return_complex=True)
        power = spectrum.abs().square().T @ self.bands
        return power.clamp(min=FLOOR).log10()


class AudioReader(Reader):
    """One example -> (N, frames x mels), a slot a row."""

    def __init__(self, config: Audio) -> None:
        self.field, self.config, self.log_mel = config.fields[0], config, LogMel(config)

    def file(self, example: ResolvedExample) -> File:
        """The file of a query; in the data, a key or a path."""
        value = example.inputs.get(self.field)
        if isinstance(value, File):
            return value
        if not isinstance(value, str):
            raise DataError(
                f"example '{example.id}' has no {self.field}; its inputs are: {', '.join(example.inputs) or 'none'}"
            )
        path = Path(value) if self.config.folder is None else self.config.folder / f"{value}.wav"
        return File(str(path), path)

    def read(self, example: ResolvedExample) -> Tensor:
        config = self.config
        frames = self.log_mel(torch.from_numpy(read(self.file(example), config.sample_rate, config.max_seconds)))
        frames = (frames - frames.mean()) / frames.std().clamp(min=1e-3)  # however loud the file is
        missing = -len(frames) % config.frames  # the last slot is filled up
        return nn.functional.pad(frames, (0, 0, 0, missing)).reshape(-1, config.frames * config.mels)

    def collate(self, items: Sequence[Tensor]) -> dict[str, Tensor]:
        lengths = torch.tensor([len(item) for item in items])
        frames = pad_sequence(list(items), batch_first=True)  # (B, N, frames x mels)
        return {"frames": frames, "mask": torch.arange(frames.shape[1]) < lengths.unsqueeze(1)}


class AudioEmbedder(Embedder):
    """frames (B, N, frames x mels) -> states (B, N, E)."""

    def __init__(self, config: Audio, backbone: Backbone) -> None:
        super().__init__()
        self.reader = AudioReader(config)
        self.seconds = config.hop * config.frames
        self.projection = nn.Linear(config.frames * config.mels, backbone.input_size)
        nn.init.normal_(self.projection.weight, std=word_scale(backbone) / self.projection.in_features**0.5)
        nn.init.zeros_(self.projection.bias)  # slots begin as long as words are

    def forward(self, frames: Tensor, mask: Tensor) -> Segment:
        return Segment(self.projection(frames), mask)

    def describe(self, example: ResolvedExample) -> dict[str, Any]:
        """When each slot begins and ends."""
        count = len(self.reader.read(example))
        return {"names": [f"{n * self.seconds:.1f}-{(n + 1) * self.seconds:.1f} s" for n in range(count)]}
