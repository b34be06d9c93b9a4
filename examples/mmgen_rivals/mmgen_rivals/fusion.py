"""Networks that make one vector of the inputs: the caption's LSTM, pairs of cues, a mixture of pairs; their dropout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

import torch
import torch.nn.functional as F
from mmgen.tensors import taken
from torch import Tensor, nn

STATE_GAIN = 5.0  # of the caption's last state, whose values begin about so much smaller than those of a picture
_pass: ContextVar[int | None] = ContextVar("monte_carlo_pass", default=None)


@contextmanager
def drawn_network(number: int) -> Iterator[None]:
    """While active, Monte Carlo dropout in eval mode drops the units of the network with this number."""
    token = _pass.set(number)
    try:
        yield
    finally:
        _pass.reset(token)


class MonteCarloDropout(nn.Module):
    """Bernoulli dropout that can also drop when it writes (Patro et al., 2020; Gal and Ghahramani, 2016).

    In eval mode inside `drawn_network(n)` the same units (W,) are dropped for all rows and slots: they follow from n
    and `place`, so that texts do not depend on the batch. `place`: of this layer in its network.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p, self.place = p, 0

    def forward(self, states: Tensor) -> Tensor:
        number = _pass.get()
        if self.training or number is None:
            return F.dropout(states, self.p, self.training)
        generator = torch.Generator().manual_seed(number * 1000 + self.place)
        stays = torch.rand(states.shape[-1], generator=generator) >= self.p  # (W,)
        return states * (stays.to(states) / (1 - self.p))


def in_order(states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The slots of (B, L, E) that `mask` (B, L) marks, first in each row: (B, N, E), and their numbers (B,)."""
    order = (~mask).long().argsort(dim=1, stable=True)[:, : max(1, int(mask.sum(1).max()))]
    return taken(states, order), mask.sum(1)


def mean_of(states: Tensor, mask: Tensor) -> Tensor:
    """(B, E) the mean of the slots that `mask` (B, L) marks; 0 for a row without any."""
    return states.masked_fill(~mask.unsqueeze(-1), 0).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


class CaptionReader(nn.Module):
    """Word embeddings (B, L, E) -> the last state (B, E) of an LSTM of two layers, 0 for an empty caption."""

    def __init__(self, width: int, dropout: nn.Module) -> None:
        super().__init__()
        self.dropout, self.lstm = dropout, nn.LSTM(width, width, num_layers=2, batch_first=True)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        words, counts = in_order(states, mask)
        last = self.lstm(self.dropout(words))[0][torch.arange(len(words), device=words.device), counts.clamp(min=1) - 1]
        return last * (counts > 0).unsqueeze(1)


class Pair(nn.Module):
    """Two cues (B, E) as one vector (B, E): tanh layers of each, joined, normalised, tanh, dropout, and a linear layer.

    LayerNorm stands where the published code has batch norm, which would make a row depend on the rows beside it.
    `gain`: how much larger the weights of the second cue begin, for a cue whose values are small.
    """

    def __init__(
        self,
        width: int,
        how: Literal["multiply", "add", "concatenate"],
        p: float,
        dropout: Callable[[], nn.Module],
        gain: float = 1.0,
    ) -> None:
        super().__init__()
        self.how, self.p, self.gain = how, p, gain
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        if how == "concatenate":
            self.joined = nn.Linear(2 * width, width)
        self.last = nn.Sequential(nn.LayerNorm(width), nn.Tanh(), dropout(), nn.Linear(width, width))

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        a, b = (
            torch.tanh(layer(self._dropout(cue))) for layer, cue in ((self.first, first), (self.second, second))
        )  # (B, E) each
        if self.how == "multiply":
            vector = a * b
        elif self.how == "add":
            vector = a + b
        else:
            vector = torch.tanh(self.joined(self._dropout(torch.cat([a, b], -1))))
        result: Tensor = self.last(vector)
        return result

    def _dropout(self, cue: Tensor) -> Tensor:
        return F.dropout(cue, self.p, self.training)


class Joint(nn.Module):
    """MDN-Joint (Patro et al., 2018, section 4.1.2): picture and caption, concatenated."""

    def __init__(self, width: int, p: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(p)
        self.caption = CaptionReader(width, nn.Dropout(p))
        self.pair = Pair(width, "concatenate", p, lambda: nn.Dropout(p), STATE_GAIN)

    def forward(self, picture: Tensor, words: Tensor, is_caption: Tensor) -> Tensor:
        """A pooled picture (B, E), and slots (B, L, E) with those of the caption (B, L) -> (B, E)."""
        vector: Tensor = self.pair(self.dropout(torch.tanh(picture)), self.caption(words, is_caption))
        return vector


class Experts(nn.Module):
    """MC-SBN (Patro et al., 2020, section 4): picture x caption, picture + tags, and picture | place, weighted by a
    gate that reads the picture. An expert whose cue a step does not read has no weight."""

    def __init__(self, width: int, p: float, monte_carlo: float) -> None:
        super().__init__()
        self.dropout, self.tag_dropout, self.place_dropout = (MonteCarloDropout(monte_carlo) for _ in range(3))
        self.caption = CaptionReader(width, MonteCarloDropout(monte_carlo))
        kinds: tuple[Literal["multiply", "add", "concatenate"], ...] = ("multiply", "add", "concatenate")
        gains = (STATE_GAIN, 1.0, 1.0)  # the caption is the second cue of the first pair
        self.pairs = nn.ModuleList(
            Pair(width, how, p, lambda: MonteCarloDropout(monte_carlo), gain)
            for how, gain in zip(kinds, gains, strict=True)
        )
        self.gate = nn.Linear(width, len(kinds))

    def forward(
        self, picture: Tensor, states: Tensor, is_caption: Tensor, is_tag: Tensor, is_place: Tensor, cues: Tensor
    ) -> Tensor:
        """A pooled picture (B, E), slots (B, L, E), those of each cue (B, L); `cues` (3,): which the step reads."""
        seen = self.dropout(torch.tanh(picture))
        cue_vectors = (
            self.caption(states, is_caption),
            self.tag_dropout(mean_of(states, is_tag)),
            self.place_dropout(torch.tanh(mean_of(states, is_place))),
        )
        advice = torch.stack(
            [pair(seen, cue) for pair, cue in zip(self.pairs, cue_vectors, strict=True)], 1
        )  # (B, 3, E)
        weights = self.gate(picture).masked_fill(~cues, -torch.inf).softmax(-1)  # (B, 3)
        return (advice * weights.unsqueeze(-1)).sum(1)
