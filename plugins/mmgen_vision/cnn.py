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
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import torch
from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from mmgen.errors import DataError
from mmgen.features.images import load_image
from mmgen.features.uninitialised import Uninitialised
from mmgen.files import open_tensors
from mmgen.oom import OomRetry
from mmgen.parts import Extractor, FailedImage, Picture, Record

if TYPE_CHECKING:
    from PIL import Image

LoadedPicture: TypeAlias = "tuple[Picture, Image.Image]"
HASH_DIGITS = 16
EMPTY = "empty"
NETWORK = "network.safetensors"  # in a folder that `save_network` wrote
COMPLETE = "copy the complete folder again"


class Network:
    """A timm model's feature maps at one level.

    model    timm's name
    weights  "pretrained" (downloaded once by timm), "random" (from `seed`), a local safetensors file, or `EMPTY`:
             weights that somebody loads later, on torch's default device
    level    index of the feature map, 0 for the finest; negative indices count from the coarsest
    size     side in pixels of the square that pictures are fitted into, padded on the right and at the bottom
    folder   a folder that `save` wrote; its weights are used instead of `weights`

    Attributes: width (C), digest (of the weights), device. Raises DataError for an unknown model, weights or level.
    """

    def __init__(
        self,
        model: str,
        weights: str,
        seed: int,
        level: int,
        size: int,
        folder: Path | None = None,
    ) -> None:
        self.size = size
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if weights == EMPTY:
            self.module, self.width = create(model, level, size, model)
            self.device = torch.device("cpu")
        elif folder is None:
            self.module, self.width = load(model, weights, seed, level, size)
        else:
            self.module, self.width = load_saved(model, level, size, folder)
        self.digest = EMPTY if weights == EMPTY else digest(self.module)
        pretrained_cfg: Any = getattr(self.module, "pretrained_cfg", {})
        self.module.to(self.device)
        mean = pretrained_cfg.get("mean", (0.485, 0.456, 0.406))
        deviation = pretrained_cfg.get("std", (0.229, 0.224, 0.225))
        self.mean, self.deviation = (
            torch.tensor(numbers, device=self.device).view(3, 1, 1) for numbers in (mean, deviation)
        )

    @torch.inference_mode()
    def __call__(self, images: Sequence[Image.Image]) -> tuple[Tensor, Tensor]:
        """B pictures -> maps (B, C, h, w) float32, and the shares (B, 2) of the maps' width and height that each
        picture covers."""
        canvas = torch.zeros(len(images), 3, self.size, self.size, device=self.device)
        extents = torch.ones(len(images), 2)
        for row, (pixels, image) in enumerate(zip(canvas, images, strict=True)):
            resized = fit_picture(image, self.size)
            height, width = resized.shape[:2]
            values = torch.from_numpy(resized).to(self.device).permute(2, 0, 1).float() / 255
            pixels[:, :height, :width] = (values - self.mean) / self.deviation
            extents[row] = torch.tensor([width, height]) / self.size
        with precision(self.device):
            maps = feature_maps(self.module, canvas, self.width)
        return maps.float(), extents.to(self.device)

    def save(self, folder: Path) -> None:
        """Write the weights into a folder; the argument `folder` reads them."""
        save_network(self.module, folder)


class Pooling(Protocol):
    """What an extractor pools the maps of its network over. Picklable; without weights."""

    def regions(self, picture: Picture) -> Record:
        """The boxes of a picture, (R, 4), without features. Opens no file."""

    def pool(self, maps: Tensor, extents: Tensor, boxes: Sequence[Tensor]) -> Tensor:
        """Features (sum R, D) of the boxes (R, 4) of B pictures, from their maps (B, C, h, w) and `extents` (B, 2), the
        shares of the maps' width and height that they cover. With gradients."""


class CnnExtractor(Extractor):
    """An extractor that pools the maps of a network. An input may train such a network with a model."""

    network: Network
    pooling: Pooling
    thread_safe = True


def fit_picture(image: Image.Image, size: int) -> np.ndarray:
    """A picture whose longer side is resized to `size` pixels: (height, width, 3) uint8."""
    scale = size / max(image.size)
    width, height = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    return np.array(image if image.size == (width, height) else image.resize((width, height)))


def feature_maps(module: nn.Module, pixels: Tensor, width: int) -> Tensor:
    """The feature maps (B, C, h, w) of a module that `load` made, of `width` channels, for pixels (B, 3, size,
    size)."""
    maps: Tensor = module(pixels)[0]
    return maps if maps.shape[1] == width else maps.permute(0, 3, 1, 2)  # some timm networks have channels last


class SeededRandom(TorchDispatchMode):
    """Draws random weights from a private generator: the same numbers as torch's global generator gives after
    `torch.manual_seed(seed)`. All threads share the global generator, so two threads that build networks at once would
    mix their numbers."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        arguments = dict(kwargs or {})
        has_generator = any(argument.name == "generator" for argument in func._schema.arguments)
        if not has_generator and "generator" in func.overloadpacket.overloads() and func._overloadname == "default":
            func, has_generator = func.overloadpacket.generator, True  # rand, randn, randperm
        if has_generator and arguments.get("generator") is None:
            arguments["generator"] = self.generator
        return func(*args, **arguments)


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
        with SeededRandom(seed):
            module, width = create(model, level, size, **options)
    except DataError:
        raise
    except Exception as error:  # the hub, safetensors and timm raise many kinds of errors
        reason = str(error).strip().partition("\n")[0]
        if isinstance(error, ConnectionError | LocalEntryNotFoundError | OfflineModeIsEnabled):
            reason = "not on this machine, and the hub cannot be reached"
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
    """The number of channels of every level of a timm model's feature maps. Builds the model without its weights, and
    draws no numbers from torch's global generator."""
    import timm

    with SeededRandom(0), Uninitialised():
        return channels(timm.create_model(model, features_only=True, **size_options(model, size)))


def channels(module: nn.Module) -> list[int]:
    """The number of channels of every level of a timm model's feature maps: all blocks of a transformer, of which timm
    returns three if not asked for others."""
    info: Any = module.feature_info
    return [level["num_chs"] for level in info.info]


def load_saved(model: str, level: int, size: int, folder: Path) -> tuple[nn.Module, int]:
    """A timm model in eval mode with the weights that `save_network` wrote, and the number of channels of its map. Its
    names and shapes are compared with the file before memory is taken. Raises DataError."""
    with torch.device("meta"):
        check_saved(create(model, level, size, folder)[0], folder)
    with Uninitialised():
        module, width = create(model, level, size, folder)
    load_network(module, folder)
    return module, width


def create(model: str, level: int, size: int, place: object = "", **options: Any) -> tuple[nn.Module, int]:
    """A timm model in eval mode, and the number of channels of its map. `place`: the prefix of errors; `options`: of
    timm. Raises DataError."""
    import timm

    where = f"{place}: " if place else ""
    if not timm.is_model(model):
        similar = timm.list_models(f"*{model.partition('.')[0][:6]}*")[:4]
        advice = f"; similar models: {', '.join(similar)}, ..." if similar else ""
        raise DataError(f"{where}timm has no model '{model}'{advice}")
    levels = level_channels(model, size)
    if not -len(levels) <= level < len(levels):
        raise DataError(
            f"{where}'{model}' has {len(levels)} levels of feature maps, 0 to {len(levels) - 1}, but level is {level}"
        )
    index, options = level % len(levels), {**size_options(model, size), **options}
    module = timm.create_model(model, features_only=True, out_indices=(index,), **options)
    return module.eval().requires_grad_(False), levels[index]


def save_network(module: nn.Module, folder: Path) -> None:
    """Write a network's weights into a folder, for `load_network`."""
    save_file({name: tensor.cpu().contiguous() for name, tensor in module.state_dict().items()}, folder / NETWORK)


def check_saved(module: nn.Module, folder: Path) -> None:
    """Compare names and shapes of a network with the file in a folder, whose values are not read. Raises DataError."""
    with _open_network(folder) as file:
        saved = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    expected = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    if differs := sorted(name for name in {*saved, *expected} if saved.get(name) != expected.get(name)):
        raise DataError(
            f"{folder / NETWORK}: not the weights of this network: {differs[0]} has shape {saved.get(differs[0])} in "
            f"the file, expected {expected.get(differs[0])}; use the complete folder"
        )


def load_network(module: nn.Module, folder: Path) -> None:
    """Load the weights that `save_network` wrote. Raises DataError."""
    check_saved(module, folder)
    with _open_network(folder) as file:
        module.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118


def _open_network(folder: Path) -> contextlib.AbstractContextManager[Any]:
    return open_tensors(folder / NETWORK, COMPLETE, COMPLETE, DataError)


def digest(module: nn.Module) -> str:
    """The first digits of the SHA-256 of a module's weights."""
    sha256 = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        sha256.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        sha256.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return sha256.hexdigest()[:HASH_DIGITS]


def weights_name(weights: str) -> str:
    """The name of weights in a fingerprint: "file" instead of a path, since the digest identifies the file."""
    return weights if weights in ("pretrained", "random") else "file"


def extract_records(
    extractor: str,
    source: Iterable[Picture] | Path,
    skip: frozenset[str],
    size: int,
    describe: Callable[[Sequence[LoadedPicture]], Iterable[Record]],
) -> Iterator[Record | FailedImage]:
    """Records of all pictures except the keys in `skip`, opened and described `size` at a time, or fewer when memory
    runs out. A picture that cannot be opened gives a FailedImage in its place. Raises DataError, which names the
    extractor, if the source is a file."""
    if isinstance(source, Path):
        raise DataError(f"{source}: '{extractor}' extracts features from pictures, not from a file")
    retry = OomRetry(
        "extracting features",
        "use a smaller network, smaller pictures (image_size), or a larger device",
        unit="picture",
        named=lambda loaded: loaded[0].key,
    )
    batch: list[LoadedPicture] = []
    with contextlib.closing(_load_ahead((picture for picture in source if picture.key not in skip), size)) as pictures:
        for picture in pictures:
            if isinstance(picture, FailedImage):
                yield picture
                continue
            batch.append(picture)
            if len(batch) == size:
                yield from _records_of_batch(batch, describe, retry)
                batch = []
        yield from _records_of_batch(batch, describe, retry)


def _load_ahead(source: Iterable[Picture], ahead: int) -> Generator[LoadedPicture | FailedImage, None, None]:
    """Pictures in order. A thread loads the next `ahead` pictures while the network computes; a single picture needs no
    thread."""
    source = iter(source)
    first, second = next(source, None), next(source, None)
    if first is not None and second is None:
        yield _load_picture(first, functools.partial(load_image, first))
        return
    pool = ThreadPoolExecutor(1, "pictures")
    waiting: deque[tuple[Picture, Future[Image.Image]]] = deque()

    def next_picture() -> LoadedPicture | FailedImage:
        picture, loading = waiting.popleft()
        return _load_picture(picture, loading.result)

    try:
        for picture in itertools.chain(filter(None, (first, second)), source):
            waiting.append((picture, pool.submit(load_image, picture)))
            if len(waiting) > ahead:
                yield next_picture()
        while waiting:
            yield next_picture()
    finally:
        pool.shutdown(cancel_futures=True)


def _load_picture(picture: Picture, load: Callable[[], Image.Image]) -> LoadedPicture | FailedImage:
    try:
        return picture, load()
    except (DataError, OSError) as error:
        return FailedImage(picture.key, str(error))


def _records_of_batch(
    batch: Sequence[LoadedPicture], describe: Callable[[Sequence[LoadedPicture]], Iterable[Record]], retry: OomRetry
) -> Iterator[Record]:
    for _, records in retry.over(batch, lambda part: list(describe(part))):
        yield from records


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
