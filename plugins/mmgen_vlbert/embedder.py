"""VL-BERT's visual embeddings on every slot, and their reader (section 3.2; the original code where the two differ)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from mmgen_vision.mentions import MentionedReader, Mentions, mentioning
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from mmgen.errors import DataError
from mmgen.examples import ResolvedExample
from mmgen.features.classes import Regions, hide_regions
from mmgen.features.embedder import StoredEmbedder
from mmgen.parts import Backbone
from mmgen.tensors import Hiding, Segment, Slots

from . import VlBertRegions
from .published_weights import outside, within

WAVES = 256  # wave lengths for each of the four numbers of a box
WHOLE = np.array([[0, 0, 1, 1]], np.float32)


class RegionReader(MentionedReader):
    """Reads the whole picture, its regions, and the mentions of regions. Hidden regions have zero features, and the
    whole picture is the mean of the visible regions, so that no input reveals the hidden features."""

    hides = "regions"

    def __init__(self, config: VlBertRegions, backbone: Backbone) -> None:
        self.adds_whole = config.whole_image == "mean"
        mentions = Mentions(config.mentions, config.first_object + self.adds_whole, backbone.text_encoder)
        super().__init__(config, config.max_regions, mentions)

    def pictures(self, example: ResolvedExample) -> tuple[Regions, ...]:
        return tuple(self._with_whole(regions) for regions in super().pictures(example))

    def _with_whole(self, regions: Regions) -> Regions:
        features, boxes, classes, _ = regions
        features = features.astype(np.float32, copy=False)  # float16 is too coarse for the mean
        if classes is not None:  # the whole picture is never predicted
            classes = classes[0 if self.adds_whole else 1 :].behind_unknown()
        if not self.adds_whole or boxes is None:
            return Regions(features, boxes, classes)
        whole_picture = features.mean(0, keepdims=True)
        return Regions(np.concatenate([whole_picture, features]), np.concatenate([WHOLE, boxes]), classes)

    def hide(self, item: Any, draw: random.Random, hiding: Hiding) -> tuple[Any, Tensor]:
        """Regions with some features set to zero and marked as hidden; and (N, C) class distributions of the hidden
        regions. The whole picture and the end slot are never hidden."""
        pictures, pairs = item
        masked_pictures, labels = [], []
        for regions in pictures:
            hidden, predicted = hide_regions(regions.classes, len(regions.features), self.classes, draw, hiding)
            features = np.where(hidden[:, None], np.float32(0), regions.features)
            if hidden.any():
                visible = features[1:][~hidden[1:]]
                features[0] = visible.mean(0) if len(visible) else 0
            masked_pictures.append(regions._replace(features=features, hidden=hidden))
            labels.append(predicted)
        return (tuple(masked_pictures), pairs), torch.cat([*labels, torch.full_like(labels[0][:1], -100)])

    def slots(self, value: Any) -> int:
        """The number of the picture's regions, and the whole picture."""
        return super().slots(value) + self.adds_whole

    def collate(self, items: Sequence[Any]) -> dict[str, Tensor]:
        """As in `MentionedReader`, plus hidden (B, N) bool and whole_picture (B, N) bool, slots of whole pictures."""
        batch = super().collate(items)
        for name, marks in (("hidden", _mark_hidden), ("whole_picture", _mark_whole)):
            rows = [torch.from_numpy(np.concatenate([marks(regions) for regions in pictures])) for pictures, _ in items]
            batch[name] = pad_sequence(rows, True)
        return batch


def _mark_hidden(regions: Regions) -> np.ndarray:
    return np.zeros(len(regions.features), bool) if regions.hidden is None else regions.hidden


def _mark_whole(regions: Regions) -> np.ndarray:
    return np.arange(len(regions.features)) == 0


class VlBertRegionEmbedder(StoredEmbedder):
    """features (B, R, D), boxes (B, R, 4) -> states (B, R + 1, E): per region the object word plus the region's visual
    embedding, then an end slot. All regions share one position and have the last token type.

    Every other slot also gets a visual embedding: that of the whole picture, that of the region which a word mentions,
    or, in rows without a picture, a trained one. The embeddings are initialised as 0, so that the model starts as BERT,
    unless `region_scale` and `word_scale` give their norms another weight. A hidden region has a special word instead
    of the object word, and trained features instead of the stored ones; its geometry stays.
    """

    places = 8 * WAVES
    typed = False
    reader: RegionReader

    def __init__(self, config: VlBertRegions, backbone: Backbone) -> None:
        if backbone.types < 3:
            raise DataError(
                f"vlbert_regions needs a third token type, but the backbone has {backbone.types}; set "
                'backbone.extra_token_types, or use the backbone "vlbert"'
            )
        super().__init__(config, backbone, RegionReader(config, backbone))
        width = backbone.input_size
        self.token_type, self.texts, self.corners = backbone.types - 1, config.mentions, config.geometry == "corners"
        self.dropout = nn.Dropout(config.dropout)
        self.object_word, self.end, self.without_picture, self.hidden_word = (
            nn.Parameter(torch.empty(width)) for _ in range(4)
        )
        for parameter in (self.object_word, self.end, self.without_picture, self.hidden_word):
            nn.init.normal_(parameter, std=0.02)
        self.hidden_look = nn.Parameter(torch.zeros(self.width))
        self._seen: tuple[Tensor, Tensor] | None = None  # features, and the output of `looks` for them
        self.region_norm, self.word_norm = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        nn.init.constant_(self.region_norm.weight, config.region_scale)
        nn.init.constant_(self.word_norm.weight, config.word_scale)

    def forward(
        self,
        features: Tensor,
        mask: Tensor,
        boxes: Tensor | None = None,
        picture: Tensor | None = None,
        pairs: Tensor | None = None,
        hidden: Tensor | None = None,
        whole_picture: Tensor | None = None,
    ) -> Segment:
        assert boxes is not None  # the reader refuses regions without boxes
        hidden = torch.zeros_like(mask) if hidden is None else hidden
        words = torch.where(hidden.unsqueeze(-1), self.hidden_word, self.object_word)
        looks = self.looks(features, boxes, hidden)
        self._seen = features, looks  # for the words' visual embeddings: dropout is drawn once
        regions = words + self.region_norm(looks)  # (B, R, E)
        states = torch.cat([regions, self.end.expand(len(regions), 1, -1).to(regions.dtype)], 1)
        positions = F.pad(torch.zeros_like(mask, dtype=torch.long), (0, 1), value=1)
        return Segment(states, F.pad(mask, (0, 1), value=True), torch.full_like(positions, self.token_type), positions)

    def looks(self, features: Tensor, boxes: Tensor, hidden: Tensor | None = None) -> Tensor:
        """The visual feature embedding of regions before its norm, (B, R, E), from features and geometry."""
        seen = self._normalised(features)
        if hidden is not None:
            seen = torch.where(hidden.unsqueeze(-1), self.hidden_look, seen)
        return F.relu(self.projection(self.dropout(torch.cat([seen, self.where(boxes).to(features.dtype)], -1))))

    def where(self, boxes: Tensor) -> Tensor:
        """(B, R, 2048): for each of the four numbers of a box, sines and then cosines of 256 wavelengths."""
        first, last = boxes[..., :2], boxes[..., 2:]
        numbers = boxes if self.corners else torch.cat([(first + last) / 2, last - first], -1)
        lengths = 1000 ** (torch.arange(WAVES, device=boxes.device) / WAVES)
        angles = (numbers.float() * 100).unsqueeze(-1) / lengths  # (B, R, 4, 256)
        return torch.cat([angles.sin(), angles.cos()], -1).flatten(-2)

    def add(self, slots: Slots, collated: Mapping[str, Tensor] | None, name: str) -> Tensor | None:
        """The visual embeddings of all slots that are not regions: (B, L, E)."""
        if collated is None:
            return self._absent_picture(slots).unsqueeze(1).expand_as(slots.states)
        if "pairs" in collated:
            terms = self._mentioned_terms(slots, collated)
        else:
            terms = self.word_norm(self._known_looks(collated)[:, :1]).expand(slots.states.shape)
        return terms.masked_fill(self._mark_regions(slots).unsqueeze(-1), 0)

    def tail_term(self, slots: Slots, collated: Mapping[str, Tensor] | None) -> Tensor | None:
        """The visual embedding of generated words: that of the whole picture, (B, E)."""
        term = self._absent_picture(slots) if collated is None else self.word_norm(self._known_looks(collated)[:, 0])
        self._seen = None  # this method is called last
        return term

    def _known_looks(self, collated: Mapping[str, Tensor]) -> Tensor:
        """The output of `looks`, (B, R, E), the whole picture first: that of `forward` if the features are the same."""
        seen = self._seen  # read once: another thread may replace it
        if seen is not None and seen[0] is collated["features"]:
            return seen[1]
        return self.looks(collated["features"], collated["boxes"], collated.get("hidden"))

    def _absent_picture(self, slots: Slots) -> Tensor:
        """The visual embedding of rows without a picture, (B, E); 0 if the row has another input of regions."""
        seen = self._mark_regions(slots).any(1, keepdim=True)
        return self.word_norm(self.without_picture).expand(len(seen), -1).masked_fill(seen, 0)

    def _mark_regions(self, slots: Slots) -> Tensor:
        """(B, L) bool: regions and end slots, of this and other inputs of regions."""
        assert slots.source is not None  # of a model's rows
        return (slots.types == self.token_type) & (slots.source >= 0) & slots.layout.real

    def _mentioned_terms(self, slots: Slots, collated: Mapping[str, Tensor]) -> Tensor:
        """The visual embedding of every slot, (B, L, E): that of the region which its word mentions (of several regions
        the mean), else that of the whole picture."""
        pairs, terms = collated["pairs"], self.word_norm(self._known_looks(collated))
        words, present = mentioning(slots, self.texts, pairs)
        region_index = pairs[..., 0].clamp(min=0).unsqueeze(-1).expand(-1, -1, terms.shape[-1])
        mentioned = terms.gather(1, region_index) * present.unsqueeze(-1)  # (B, M, E)
        total = terms.new_zeros(slots.states.shape).scatter_add(1, words.unsqueeze(-1).expand_as(mentioned), mentioned)
        count = terms.new_zeros(slots.positions.shape).scatter_add(1, words, present.to(terms.dtype)).unsqueeze(-1)
        return torch.where(count > 0, total / count.clamp(min=1), terms[:, :1])

    def describe(self, example: ResolvedExample) -> dict[str, Any]:
        """labels, boxes and scores of the example's slots: each whole picture before its regions, the end slot last;
        "regions": whether each slot is a region; for several pictures also "pictures": the picture of each slot."""
        described = super().describe(example)
        of = described.get("pictures") or [0] * len(described["names"])
        starts = [place for place, picture in enumerate(of) if picture not in of[:place]]
        described["regions"] = [self.reader.adds_whole or place not in starts for place in range(len(of))]
        for name, whole_value, last in (
            ("names", "the whole picture", "the end"),
            ("boxes", WHOLE[0].tolist(), [0.0] * 4),
            ("scores", 1.0, 1.0),
            ("pictures", None, of[-1]),
            ("regions", False, False),
        ):
            if values := described.get(name):
                for place in reversed(starts) if self.reader.adds_whole else ():
                    values.insert(place, of[place] if whole_value is None else whole_value)
                values.append(last)
        return described

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Weights of the original code, where the geometry comes before the features."""
        inner, tensors = within(weights), {}
        for parameter, theirs in (
            ("end", "end_embedding.weight"),
            ("region_norm.weight", "visual_ln_object.weight"),
            ("region_norm.bias", "visual_ln_object.bias"),
            ("word_norm.weight", "visual_ln_text.weight"),
            ("word_norm.bias", "visual_ln_text.bias"),
        ):
            if theirs in inner:
                tensors[parameter] = weights[inner[theirs]]
        for parameter, theirs in (
            ("object_word", "object_linguistic_embeddings.weight"),
            ("hidden_word", "object_mask_word_embedding.weight"),
            ("hidden_look", "object_mask_visual_embedding.weight"),
            ("without_picture", "aux_text_visual_embedding.weight"),
            ("projection.weight", "image_feature_extractor.obj_downsample.1.weight"),
            ("projection.bias", "image_feature_extractor.obj_downsample.1.bias"),
        ):
            if (name := outside(weights, theirs)) is not None:
                tensors[parameter] = weights[name]
        for name in ("end", "object_word", "without_picture", "hidden_word", "hidden_look"):
            if name in tensors:
                tensors[name] = tensors[name].reshape(-1)
        # a tensor of any other shape is refused later, by its shape
        if "projection.weight" in tensors and tensors["projection.weight"].ndim == 2:
            tensors["projection.weight"] = tensors["projection.weight"].roll(-self.places, 1)
        return tensors
