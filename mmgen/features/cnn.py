"""Pictures through a timm network: loading it, what identifies its weights, and the feature maps that extractors pool.

Everything is a function of the picture alone: networks are in eval mode and pictures are brought to one size, so that
neither the batch nor the other pictures in it change a feature. On a GPU networks run in mixed precision.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from ..errors import DataError
from ..oom import OomRetry
from ..parts import FailedImage, Picture, Record

if TYPE_CHECKING:
    from PIL import Image

Opened: TypeAlias = "tuple[Picture, Image.Image]"
HASH_DIGITS = 16


class Network:
    """A timm model's feature maps at one level.

    model    timm's name
    weights  "pretrained" (downloaded once by timm), "random" (from `seed`), or a local safetensors file
    level    which of the model's maps, 0 the finest; negative from the coarsest
    size     side of the square that pictures are brought to, in pixels
    fit      "pad" keeps their shape and fills up on the right and below; "stretch" does not keep it

    width (C), digest (of the weights) and device follow. Raises DataError for an unknown model, weights or level.
    """

    def __init__(
        self, model: str, weights: str, seed: int, level: int, size: int, fit: Literal["pad", "stretch"] = "pad"
    ) -> None:
        self.size, self.fit = size, fit
        self.module, self.width = load(model, weights, seed, level, size)
        self.digest = digest(self.module)
        about: Any = getattr(self.module, "pretrained_cfg", {})
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.module.to(self.device)
        mean, deviation = about.get("mean", (0.485, 0.456, 0.406)), about.get("std", (0.229, 0.224, 0.225))
        self.mean, self.deviation = (
            torch.tensor(numbers, device=self.device).view(3, 1, 1) for numbers in (mean, deviation)
        )

    @torch.inference_mode()
    def __call__(self, images: Sequence[Image.Image]) -> tuple[Tensor, Tensor]:
        """B pictures -> maps (B, C, h, w) float32, and the shares (B, 2) of the maps' width and height they cover."""
        canvas = torch.zeros(len(images), 3, self.size, self.size, device=self.device)
        extents = torch.ones(len(images), 2)
        for row, (pixels, image) in enumerate(zip(canvas, images, strict=True)):
            width, height = self._fitted(image)
            resized = image if image.size == (width, height) else image.resize((width, height))
            values = torch.from_numpy(np.array(resized)).to(self.device).permute(2, 0, 1).float() / 255
            pixels[:, :height, :width] = (values - self.mean) / self.deviation
            extents[row] = torch.tensor([width, height]) / self.size
        with precision(self.device):
            maps = self.module(canvas)[0]
        if maps.shape[1] != self.width:  # some of timm's networks put channels last
            maps = maps.permute(0, 3, 1, 2)
        return maps.float(), extents.to(self.device)

    def _fitted(self, image: Image.Image) -> tuple[int, int]:
        if self.fit == "stretch":
            return self.size, self.size
        scale = self.size / max(image.size)
        return max(1, round(image.width * scale)), max(1, round(image.height * scale))


class Drawn(TorchDispatchMode):
    """Random weights come from a generator of their own: the numbers that torch's global one gives after
    `torch.manual_seed(seed)`. All threads share the global one, so two that build networks at once would get others."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = dict(kwargs or {})
        takes = any(argument.name == "generator" for argument in func._schema.arguments)
        if not takes and "generator" in func.overloadpacket.overloads() and func._overloadname == "default":
            func, takes = func.overloadpacket.generator, True  # rand, randn, randperm
        if takes and named.get("generator") is None:
            named["generator"] = self.generator
        return func(*args, **named)


def load(model: str, weights: str, seed: int, level: int, size: int) -> tuple[nn.Module, int]:
    """A timm model that gives the maps of one level, in eval mode, and their channels."""
    import timm

    if not timm.is_model(model):
        close = timm.list_models(f"*{model.partition('.')[0][:6]}*")[:4]
        raise DataError(f"timm knows no model '{model}'" + (f"; there are: {', '.join(close)}, ..." if close else ""))
    fixed = getattr(timm.get_pretrained_cfg(model), "fixed_input_size", False)
    options: dict[str, Any] = {"img_size": size} if fixed else {}
    if weights not in ("pretrained", "random"):
        path = Path(weights)
        if path.suffix != ".safetensors" or not path.is_file():
            raise DataError(
                f'weights \'{weights}\': neither "pretrained" nor "random" nor a .safetensors file that exists'
            )
        options["pretrained_cfg_overlay"] = {"file": str(path)}
    try:
        with Drawn(seed):
            module = timm.create_model(model, pretrained=weights != "random", features_only=True, **options)
            levels = module.feature_info.channels()
            if not -len(levels) <= level < len(levels):
                raise DataError(
                    f"'{model}' has {len(levels)} levels of maps, 0 to {len(levels) - 1}; there is no level {level}"
                )
        with Drawn(seed):
            module = timm.create_model(
                model, pretrained=weights != "random", features_only=True, out_indices=(level % len(levels),), **options
            )
    except DataError:
        raise
    except Exception as error:  # the hub's, safetensors' and timm's own, of many kinds
        reason = str(error).strip().partition("\n")[0]
        raise DataError(
            f"'{model}' with weights '{weights}' cannot be loaded: {reason}; offline, name a local .safetensors file "
            'or "random"'
        ) from None
    if weights == "random":
        _open_branches(module)
    return module.eval().requires_grad_(False), levels[level]


def digest(module: nn.Module) -> str:
    """What identifies a module's weights: the beginning of their SHA-256."""
    whole = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        whole.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        whole.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return whole.hexdigest()[:HASH_DIGITS]


def weights_name(weights: str) -> str:
    """How a fingerprint names weights: a path means nothing on another machine, the digest says which they are."""
    return weights if weights in ("pretrained", "random") else "file"


def described(
    source: Iterable[Picture], skip: frozenset[str], size: int, describe: Callable[[Sequence[Opened]], Iterable[Record]]
) -> Iterator[Record | FailedImage]:
    """Records of pictures, but for the keys in `skip`: opened and described `size` at a time, fewer where memory is
    short. Those that cannot be opened are broken, and come where they are met."""
    halving = OomRetry(
        "extracting features",
        "use a smaller network, smaller pictures (image_size), or a larger device",
        unit="picture",
        named=lambda opened: opened[0].key,
    )
    batch: list[Opened] = []
    with contextlib.closing(_opened((picture for picture in source if picture.key not in skip), size)) as pictures:
        for picture in pictures:
            if isinstance(picture, FailedImage):
                yield picture
                continue
            batch.append(picture)
            if len(batch) == size:
                yield from _records(batch, describe, halving)
                batch = []
        yield from _records(batch, describe, halving)


def _opened(source: Iterable[Picture], ahead: int) -> Generator[Opened | FailedImage, None, None]:
    """Pictures in their order. One thread opens the next `ahead` of them while the network computes."""
    pool = ThreadPoolExecutor(1, "pictures")
    waiting: deque[tuple[Picture, Future[Image.Image]]] = deque()

    def first() -> Opened | FailedImage:
        picture, loading = waiting.popleft()
        try:
            return picture, loading.result()
        except (DataError, OSError) as error:
            return FailedImage(picture.key, str(error))

    try:
        for picture in source:
            waiting.append((picture, pool.submit(picture.load)))
            if len(waiting) > ahead:
                yield first()
        while waiting:
            yield first()
    finally:
        pool.shutdown(cancel_futures=True)


def _records(
    batch: Sequence[Opened], describe: Callable[[Sequence[Opened]], Iterable[Record]], halving: OomRetry
) -> Iterator[Record]:
    for _, records in halving.over(batch, lambda part: list(describe(part))):
        yield from records


def precision(device: torch.device) -> contextlib.AbstractContextManager:
    """Mixed precision where there is a GPU; on a CPU results are exact and repeat."""
    return torch.autocast("cuda", torch.float16) if device.type == "cuda" else contextlib.nullcontext()


@torch.no_grad()
def _open_branches(module: nn.Module) -> None:
    """Open the residual branches of an untrained network. timm sets the last norm of a branch to zero, which switches
    the branch off; set it to one."""
    for part in module.modules():
        weight = getattr(part, "weight", None)
        if isinstance(part, nn.BatchNorm2d | nn.GroupNorm | nn.LayerNorm) and weight is not None and not weight.any():
            weight.fill_(1.0)
