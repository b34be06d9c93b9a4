"""timm networks of extractors: load, save, digest; pictures resized and sent through them in batches; feature maps.

Features depend on the picture alone: networks are in eval mode and all pictures are resized to one size, so the other
pictures of a batch change nothing. On a GPU, networks run in mixed precision.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torchvision.ops import roi_align

from mmgen.errors import DataError, did_you_mean
from mmgen.features.images import load_image
from mmgen.features.uninitialised import Uninitialised
from mmgen.files import model_folder, open_tensors
from mmgen.oom import OomRetry
from mmgen.parts import Extractor, FailedImage, Picture, Record

from .boxes import Box
from .cnn_config import hub_name

if TYPE_CHECKING:
    from PIL import Image

LoadedPicture: TypeAlias = "tuple[Picture, Image.Image]"
EMPTY = "empty"
NETWORK = "network.safetensors"  # in a folder that `save_network` wrote
COMPLETE = "copy the complete folder again"
DEEPER = 1 << 25  # numbers in levels that timm builds and drops: of an export's network only the levels used are saved


class Network(nn.Module):
    """A timm model's feature maps at one level. In eval mode, on the CPU; its weights do not train.

    model    timm's name
    weights  "pretrained" (downloaded once by timm), "random" (from `seed`), a local safetensors file, or `EMPTY`:
             weights that somebody loads later, on torch's default device
    level    index of the feature map, 0 for the finest; negative indices count from the coarsest
    size     side in pixels of the square that pictures are fitted into, padded on the right and at the bottom
    folder   a folder that `save_network` wrote; its weights are used instead of `weights`

    Attributes: width (C). Raises DataError for an unknown model, weights or level.
    """

    mean: Tensor  # (3, 1, 1)
    deviation: Tensor

    def __init__(self, model: str, weights: str, seed: int, level: int, size: int, folder: Path | None = None) -> None:
        super().__init__()
        if weights == EMPTY:
            self.module, self.width = create(model, level, size, model)
        elif folder is None:
            self.module, self.width = load(model, weights, seed, level, size)
        else:
            self.module, self.width = load_saved(model, level, size, folder)
        about: Any = getattr(self.module, "pretrained_cfg", {})
        mean, deviation = about.get("mean", (0.485, 0.456, 0.406)), about.get("std", (0.229, 0.224, 0.225))
        self.register_buffer("mean", torch.tensor(mean).view(3, 1, 1), persistent=False)
        self.register_buffer("deviation", torch.tensor(deviation).view(3, 1, 1), persistent=False)

    def forward(self, pixels: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
        """Maps (B, C, h, w) float32 of pixels (B, 3, S, S) uint8, and the shares (B, 2) of the maps' width and height
        that each picture covers. `sizes` (B, 2): the width and height in pixels that each picture covers."""
        place = torch.arange(pixels.shape[-1], device=pixels.device)
        inside = (place < sizes[:, 1:]).unsqueeze(2) & (place < sizes[:, :1]).unsqueeze(1)  # (B, S, S)
        values = (pixels.to(self.mean.dtype) / 255 - self.mean) / self.deviation
        maps: Tensor = self.module(values * inside.unsqueeze(1))[0]
        if maps.shape[1] != self.width:  # some timm networks have channels last
            maps = maps.permute(0, 3, 1, 2)
        return maps.float(), sizes / pixels.shape[-1]


class PictureExtractor(Extractor):
    """An extractor of pictures. A subclass has `fingerprint`, and says which records a batch of pictures gives.

    batch_size  pictures that are opened and described at a time, or fewer when memory runs out
    """

    batch_size = 1

    @functools.cached_property
    def device(self) -> torch.device:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def describe(self, batch: Sequence[LoadedPicture]) -> Iterable[Record]:
        """The records of a batch."""
        raise NotImplementedError

    def records(
        self, source: Iterable[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> Iterator[Record | FailedImage]:
        """As for all extractors. Pictures that cannot be opened come before the others of their batch."""
        if isinstance(source, Path):
            name = self.fingerprint["extractor"]
            raise DataError(f"{source}: '{name}' extracts features from pictures, not from a file")
        retry = OomRetry(
            "extracting features",
            "use a smaller network, smaller pictures (image_size), or a larger device",
            unit="picture",
            named=lambda loaded: loaded[0].key,
        )
        loaded = _load_ahead((picture for picture in source if picture.key not in skip), self.batch_size)
        with contextlib.closing(loaded) as pictures:
            while batch := list(itertools.islice(pictures, self.batch_size)):
                yield from (picture for picture in batch if isinstance(picture, FailedImage))
                opened = [picture for picture in batch if not isinstance(picture, FailedImage)]
                for _, records in retry.over(opened, lambda part: list(self.describe(part))):
                    yield from records


class CnnExtractor(PictureExtractor):
    """An extractor that pools the maps of a network. An input may train such a network with a model."""

    network: Network
    pooling: RoiPooling
    size: int  # of pictures, in pixels
    thread_safe = True

    @torch.inference_mode()
    def describe(self, batch: Sequence[LoadedPicture]) -> Iterator[Record]:
        regions = [self.regions(loaded) for loaded in batch]
        pixels, sizes = stack_pictures([fit_picture(image, self.size) for _, image in batch], self.size)
        with precision(self.device):
            maps, extents = self.network(pixels.to(self.device), sizes.to(self.device))
        boxes = [torch.as_tensor(region.boxes, device=self.device) for region in regions]
        pooled = self.pooling.pool(maps, extents, boxes).cpu()  # (sum R, D)
        for region, features in zip(regions, pooled.split([len(inner) for inner in boxes]), strict=True):
            yield replace(region, features=features.numpy())

    def regions(self, loaded: LoadedPicture) -> Record:
        """The boxes of a picture, with all that is known about them but their features."""
        return self.pooling.regions(loaded[0])


@dataclass(frozen=True)
class RoiPooling:
    """Pools a map over boxes (RoIAlign; He et al., 2017), in size x size parts: a picture's own, or `boxes` if it has
    none. A grid has the same boxes for all pictures (`own_boxes` is false)."""

    size: int
    boxes: Sequence[Box]
    own_boxes: bool = True

    def regions(self, picture: Picture) -> Record:
        """The boxes of a picture, (R, 4), without features. Opens no file."""
        if picture.boxes is None or not self.own_boxes:
            picture = replace(picture, boxes=self.boxes, region_names=None, classes=None)
        boxes = np.array(picture.boxes, np.float32).reshape(-1, 4)
        names = None if picture.region_names is None else tuple(picture.region_names)
        return Record(picture.key, boxes[:, :0], boxes.clip(0, 1), names, classes=picture.classes)

    def pool(self, maps: Tensor, extents: Tensor, boxes: Sequence[Tensor]) -> Tensor:
        """Features (sum R, D) of the boxes (R, 4) of B pictures, from their maps (B, C, h, w) and `extents` (B, 2), the
        shares of the maps' width and height that they cover. With gradients."""
        scale = torch.tensor([maps.shape[3], maps.shape[2]], device=maps.device)
        scaled = [inner * (extent * scale).repeat(2) for inner, extent in zip(boxes, extents, strict=True)]
        pooled: Tensor = roi_align(maps, scaled, self.size, sampling_ratio=-1, aligned=True)
        return pooled.flatten(1)


def fit_picture(image: Image.Image, size: int) -> np.ndarray:
    """A picture whose longer side is resized to `size` pixels: (height, width, 3) uint8."""
    scale = size / max(image.size)
    width, height = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    return np.array(image.resize((width, height)))


def stack_pictures(pictures: Sequence[np.ndarray], size: int) -> tuple[Tensor, Tensor]:
    """Pixels (B, 3, size, size) and sizes (B, 2) of pictures that `fit_picture` resized, for a `Network`."""
    pixels = torch.zeros(len(pictures), 3, size, size, dtype=torch.uint8)
    for square, picture in zip(pixels, pictures, strict=True):
        height, width = picture.shape[:2]
        square[:, :height, :width] = torch.from_numpy(picture).permute(2, 0, 1)
    return pixels, torch.tensor([picture.shape[1::-1] for picture in pictures])


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Random weights are drawn from a seed, and torch's generator is as before afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


def load(model: str, weights: str, seed: int, level: int, size: int) -> tuple[nn.Module, int]:
    """A timm model in eval mode that returns the feature map of one level, and the number of channels of the map."""
    options: dict[str, Any] = {"pretrained": weights != "random"}
    if weights not in ("pretrained", "random"):
        path = Path(weights)
        if path.suffix != ".safetensors" or not path.is_file():
            raise DataError(
                f'weights \'{weights}\' must be "pretrained", "random" or the path of an existing .safetensors file'
            )
        options["pretrained_cfg_overlay"] = {"file": str(path)}
    try:
        if weights == "pretrained" and (name := hub_name(model)):
            path = Path(model_folder(name), "model.safetensors")
            options |= {"pretrained_cfg_overlay": {"file": str(path)}} if path.exists() else {}
        with seeded(seed):
            module, width = create(model, level, size, **options)
    except DataError:
        raise
    except Exception as error:  # the hub, safetensors and timm raise many kinds of errors
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise DataError(
            f"'{model}' with weights '{weights}' cannot be loaded: {reason}; offline, use a local .safetensors file "
            'or "random"'
        ) from None
    if weights == "random":
        _open_branches(module)
    return module, width


def size_options(model: str, size: int) -> dict[str, Any]:
    """The options of timm for a model whose pictures are always `size` pixels wide and high."""
    import timm

    return {"img_size": size} if getattr(timm.get_pretrained_cfg(model), "fixed_input_size", False) else {}


@functools.cache
def level_channels(model: str, size: int) -> Sequence[int]:
    """The number of channels of every level of a timm model's feature maps: all blocks of a transformer, of which timm
    returns three if not asked for others. Builds the model without its weights."""
    import timm

    with seeded(0), Uninitialised():
        module: Any = timm.create_model(model, features_only=True, **size_options(model, size))
    return [level["num_chs"] for level in module.feature_info.info]


def load_saved(model: str, level: int, size: int, folder: Path) -> tuple[nn.Module, int]:
    """A timm model in eval mode with the weights that `save_network` wrote, and the number of channels of its map.
    Raises DataError, and RunError for a model that is far larger than the weights."""
    tensors = read_network(folder)
    with Uninitialised(DEEPER + sum(tensor.numel() for tensor in tensors.values())):
        module, width = create(model, level, size, folder)
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{folder / NETWORK}: not the weights of '{model}': {reason}; {COMPLETE}") from None
    return module, width


def create(model: str, level: int, size: int, place: object = "", **options: Any) -> tuple[nn.Module, int]:
    """A timm model in eval mode, and the number of channels of its map. `place`: the prefix of errors; `options`: of
    timm. Raises DataError."""
    import timm

    where = f"{place}: " if place else ""
    if not timm.is_model(model):
        raise DataError(f"{where}timm has no model '{model}'{did_you_mean(model, timm.list_models())}")
    levels = level_channels(model, size)
    if not -len(levels) <= level < len(levels):
        raise DataError(
            f"{where}'{model}' has {len(levels)} levels of feature maps, 0 to {len(levels) - 1}, but level is {level}"
        )
    index, options = level % len(levels), {**size_options(model, size), **options}
    module = timm.create_model(model, features_only=True, out_indices=(index,), **options)
    return module.eval().requires_grad_(False), levels[index]


def save_network(tensors: Mapping[str, Tensor], folder: Path) -> None:
    """Write a network's weights into a folder, for `read_network`."""
    save_file({name: tensor.cpu().contiguous() for name, tensor in tensors.items()}, folder / NETWORK)


def read_network(folder: Path) -> dict[str, Tensor]:
    """The weights that `save_network` wrote. Raises DataError."""
    with open_tensors(folder / NETWORK, COMPLETE, COMPLETE, DataError) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def digest(tensors: Mapping[str, Tensor]) -> str:
    """The first digits of the SHA-256 of a network's weights."""
    sha256 = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        sha256.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        sha256.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return sha256.hexdigest()[:16]


def _load_ahead(source: Iterable[Picture], ahead: int) -> Generator[LoadedPicture | FailedImage, None, None]:
    """Pictures in order. A thread loads the next `ahead` pictures while the network computes; for one picture, such as
    a query's, it would only cost."""
    pictures = iter(source)
    first = list(itertools.islice(pictures, 2))
    if len(first) < 2:
        yield from map(_load_picture, first)
        return
    pool = ThreadPoolExecutor(1, "pictures")
    waiting: deque[Future[LoadedPicture | FailedImage]] = deque()
    try:
        for picture in itertools.chain(first, pictures):
            waiting.append(pool.submit(_load_picture, picture))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _load_picture(picture: Picture) -> LoadedPicture | FailedImage:
    try:
        return picture, load_image(picture)
    except (DataError, OSError) as error:
        return FailedImage(picture.key, str(error))


def precision(device: torch.device) -> contextlib.AbstractContextManager:
    """Mixed precision of the extraction on a GPU; on a CPU, results are exact and reproducible."""
    return torch.autocast("cuda", torch.float16) if device.type == "cuda" else contextlib.nullcontext()


@torch.no_grad()
def _open_branches(module: nn.Module) -> None:
    """Open the residual branches of an untrained network. timm sets the last norm of a branch to zero, which switches
    the branch off; set it to one."""
    for part in module.modules():
        weight = getattr(part, "weight", None)
        if isinstance(part, nn.BatchNorm2d | nn.GroupNorm | nn.LayerNorm) and weight is not None and not weight.any():
            weight.fill_(1.0)
