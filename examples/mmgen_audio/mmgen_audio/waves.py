"""WAV files as numbers between -1 and 1; and numbers as WAV files."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
from mmgen.errors import DataError
from mmgen.parts import File


def read(source: File, sample_rate: int, max_seconds: float) -> np.ndarray:
    """The beginning of a PCM file, its channels averaged: (samples,) float32. Raises DataError."""
    path = source.name
    try:
        with source.open() as opened, wave.open(opened, "rb") as file:
            rate, channels, width = file.getframerate(), file.getnchannels(), file.getsampwidth()
            data = file.readframes(round(max_seconds * sample_rate))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, EOFError, wave.Error) as error:
        raise DataError(
            f"{path}: not a PCM WAV file: {str(error) or 'it ends too early'}; convert it (ffmpeg -i IN -c:a pcm_s16le "
            "OUT.wav)"
        ) from None
    if rate != sample_rate:
        raise DataError(
            f"{path}: has {rate} samples a second, and sample_rate is {sample_rate}; convert it (ffmpeg -i IN -ar "
            f"{sample_rate} OUT.wav)"
        )
    samples = numbers(data[: len(data) // (width * channels) * width * channels], width).reshape(-1, channels).mean(1)
    if not len(samples):
        raise DataError(f"{path}: holds no sound")
    return samples.astype(np.float32)


def numbers(data: bytes, width: int) -> np.ndarray:
    """Samples of `width` bytes as numbers between -1 and 1. 8 bits have no sign; all others do, the lowest byte
    first."""
    if width == 1:
        return np.frombuffer(data, np.uint8) / 128.0 - 1.0
    if width == 3:  # shifted up to 32 bits
        padded = np.zeros((len(data) // 3, 4), np.uint8)
        padded[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        return padded.reshape(-1).view("<i4") / 2.0**31
    return np.frombuffer(data, f"<i{width}") / 2.0 ** (8 * width - 1)


def write(path: Path, samples: np.ndarray, sample_rate: int) -> None:
    """Numbers between -1 and 1 as a file of 16 bits and one channel."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes((samples.clip(-1, 1) * 32767).astype("<i2").tobytes())
