"""Pictures as tokens of an encoder that sees: the reader, which tiles pixels, the embedder, the boxes of patches."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from mmgen_vision.boxes import WHOLE, Box, cells
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from mmgen.errors import DataError
from mmgen.examples import ResolvedExample
from mmgen.parts import Backbone, Embedder, Picture
from mmgen.tensors import Segment

from . import ModernVBert, PictureTokens
from .picture_reader import PictureSource
from .seeing import SeeingBackbone


@dataclass(frozen=True)
class Tiled:
    """One picture as the encoder's processor cuts it.

    identity  equal for equal pictures
    pixels    (T, 3, S, S) uint8, the tiles row by row, the picture as one tile last
    rows, columns  of the tiles; 0 if the picture is one tile
    """

    identity: object
    pixels: Tensor
    rows: int
    columns: int


class TokenReader(PictureSource):
    """Reads pictures through the encoder's own processor, before it scales their values."""

    def __init__(self, config: PictureTokens, backbone: SeeingBackbone) -> None:
        super().__init__(config.fields[0])
        self.processor = backbone.processor
        self.tokenizer = copy.deepcopy(backbone.tokenizer)  # that of texts is set to know no special tokens
        self.pad_id, self.image_id, self.tokens = backbone.pad_id, backbone.image_id, backbone.tokens_per_tile
        self.options: dict[str, Any] = {} if config.split is None else {"do_image_splitting": config.split}
        if config.longest_edge is not None:
            self.options["size"] = {"longest_edge": config.longest_edge}

    def read(self, example: ResolvedExample) -> tuple[Tensor, tuple[Tiled, ...]]:
        """The tokens (N,) of the pictures, and the pictures."""
        pictures = tuple(self.tiled(value, example.id) for value in self.shown(example))
        return torch.tensor([token for picture in pictures for token in self.ids(picture)]), pictures

    def tiled(self, value: Any, example: str) -> Tiled:
        """The picture of a value, opened and cut. `example`: its id, for errors. Raises DataError."""
        done = self.processor(
            images=[[self.opened(value, example)]],
            return_tensors="pt",
            return_row_col_info=True,
            do_rescale=False,
            do_normalize=False,
            **self.options,
        )
        (rows,), (columns,) = done["rows"][0], done["cols"][0]
        return Tiled(self.identity(value), done["pixel_values"][0].to(torch.uint8), rows, columns)

    def ids(self, picture: Tiled) -> list[int]:
        """The tokens that stand for a picture."""
        text = surroundings(picture.rows, picture.columns, self.tokens)
        ids: list[int] = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return ids

    def slots(self, value: Any) -> int:
        """Those of a picture that is one tile: how many tiles a picture has is known once it is opened."""
        return self.tokens + 3

    def collate(self, items: Sequence[tuple[Tensor, tuple[Tiled, ...]]]) -> dict[str, Tensor]:
        """ids and mask (B, N); pixels (T, 3, S, S) uint8 of the tiles of every picture of the batch, once; tile_slots
        (B, N), the number of the state among the T x K that a slot shows, -1 for the word embedding of its token."""
        tiles = {picture.identity: picture.pixels for _, pictures in items for picture in pictures}
        states = torch.arange(sum(map(len, tiles.values())) * self.tokens)
        shown = dict(zip(tiles, states.split([len(pixels) * self.tokens for pixels in tiles.values()]), strict=True))
        rows = []
        for ids, pictures in items:
            places = torch.cat([shown[picture.identity] for picture in pictures])
            rows.append(torch.full_like(ids, -1).masked_scatter(ids == self.image_id, places))
        lengths = torch.tensor([len(ids) for ids, _ in items])
        ids = pad_sequence([ids for ids, _ in items], True, self.pad_id)
        return {
            "ids": ids,
            "mask": torch.arange(ids.shape[1]) < lengths.unsqueeze(1),
            "pixels": torch.cat([*tiles.values()]),
            "tile_slots": pad_sequence(rows, True, -1),
        }


class TokenEmbedder(Embedder):
    """ids (B, N), pixels (T, 3, S, S) -> states (B, N, E): those of the vision tower and connector, and the word
    embeddings of the tokens around them. All parameters are the backbone's."""

    reader: TokenReader
    mean: Tensor  # (3, 1, 1), of pixels from 0 to 255
    deviation: Tensor

    def __init__(self, config: PictureTokens, backbone: Backbone) -> None:
        super().__init__()
        if not isinstance(backbone, SeeingBackbone):
            raise DataError(
                f"the input '{config.type}' needs an encoder that sees, but {type(backbone).__name__} sees no "
                'pictures; set backbone.type = "modernvbert", or use an input of features'
            )
        self._backbone = [backbone]  # in a list, because its parameters are registered and trained with the backbone
        self.reader = TokenReader(config, backbone)
        processor = backbone.processor
        scale = processor.rescale_factor if processor.do_rescale else 1.0
        mean, deviation = (processor.image_mean, processor.image_std) if processor.do_normalize else ((0,), (1,))
        for name, values in (("mean", mean), ("deviation", deviation)):
            self.register_buffer(name, torch.tensor(values).view(-1, 1, 1) / scale, persistent=False)

    def prepare(self, pictures: Mapping[str, Picture]) -> None:
        self.reader.pictures = pictures

    def forward(self, ids: Tensor, mask: Tensor, pixels: Tensor, tile_slots: Tensor) -> Segment:
        backbone = self._backbone[0]
        states = backbone.embed(ids)
        values = (pixels.to(self.mean.dtype) - self.mean) / self.deviation
        tiles = backbone.picture_states(values.to(states.dtype)).flatten(0, 1).to(states.dtype)
        shown = tiles[tile_slots.clamp(min=0)]
        return Segment(torch.where((tile_slots >= 0).unsqueeze(-1), shown, states), mask)

    def describe(self, example: ResolvedExample) -> dict[str, Any]:
        """The tokens with their boxes in the picture; tokens around tiles have the picture as their box."""
        names: list[str] = []
        boxes: list[Box] = []
        places: list[int] = []
        values = self.reader.shown(example)
        for place, value in enumerate(values):
            picture = self.reader.tiled(value, example.id)
            ids, patches = self.reader.ids(picture), iter(patch_boxes(picture, self.reader.tokens))
            names += self.reader.tokenizer.convert_ids_to_tokens(ids)
            boxes += [next(patches) if token == self.reader.image_id else WHOLE for token in ids]
            places += [place] * len(ids)
        return {"names": names, "boxes": boxes, **({"pictures": places} if len(values) > 1 else {})}


def patch_boxes(picture: Tiled, tokens: int) -> list[Box]:
    """The boxes of the tokens of all tiles, relative to the picture."""
    side = round(tokens**0.5)
    return [box for tile in (*cells(picture.rows, picture.columns), WHOLE) for box in cells(side, side, tile)]


def surroundings(rows: int, columns: int, tokens: int) -> str:
    """The tokens, as text, of a picture cut into rows x columns tiles (0 x 0: it is one tile), `tokens` a tile: the
    tiles row by row, and then the picture as one tile, as Idefics3's processor writes it."""
    around, whole, image = ModernVBert.special_tokens[:3]
    picture = around + whole + image * tokens + around
    if not rows:
        return picture
    tiles = "".join(
        "".join(
            around + ModernVBert.tile.format(row=row, column=column) + image * tokens
            for column in range(1, columns + 1)
        )
        + "\n"
        for row in range(1, rows + 1)
    )
    return f"{tiles}\n{picture}"
