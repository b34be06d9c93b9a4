"""The LSTM backbone: what it reads first, and one slot after the other with a cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from mmgen.attention import Cache, prefix_layout
from mmgen.parts import Backbone
from mmgen.sequence import Prefix
from mmgen.tensors import PREFIX, Encoded, Slots
from mmgen_encoders.vocabulary import load_tokenizer, train_tokenizer
from torch import Tensor, nn

from . import Lstm
from .fusion import Experts, Joint, MonteCarloDropout, Pair, in_order, mean_of

FORGET_BIAS = 2.0  # of LSTMs at the start, so that inputs are remembered to the end of a text (Jozefowicz et al., 2015)
FIRST_GAIN = 3.0  # of the layers that write the LSTM's first input: it begins three times as large as a word


@torch.no_grad()
def initialise(module: nn.Module) -> None:
    """Draw the weights of a layer: words have variance 1, other layers keep the variance of what they read, and biases
    are 0.

    The published code of MDN and MC-SBN draws all parameters between -0.1 and 0.1. Then biases are larger than what
    differs between rows. Batch norm removes them there; LayerNorm does not.
    """
    if isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight)
    elif isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)
    elif isinstance(module, nn.LSTM):
        for name, parameter in module.named_parameters():
            gates = parameter.chunk(4)  # of the input, forgetting, the new value, the output
            if name.startswith("bias"):
                parameter.zero_()
                gates[1].fill_(FORGET_BIAS / 2)  # there are two biases
            else:
                for gate in gates:
                    (nn.init.orthogonal_ if "_hh_" in name else nn.init.xavier_uniform_)(gate)
    elif isinstance(module, Pair):  # after its layers
        output = module.last[-1]
        assert isinstance(output, nn.Linear)
        output.weight.mul_(FIRST_GAIN)
        module.second.weight.mul_(module.gain)


class LstmCache(Cache):
    """The state after every slot, (B, M, 2 x layers x H): hidden states, then cells. Padding repeats the state before
    it."""

    def __init__(self) -> None:
        super().__init__()
        self.states: Tensor | None = None

    @property
    def last(self) -> Tensor | None:
        """(B, 2 x layers x H) the state from which the next slot continues; None at the beginning."""
        return self.states[:, -1] if self.states is not None and len(self) else None

    def append(self, states: Tensor) -> None:
        self.states = states if self.states is None else torch.cat([self.states, states], 1)

    def _change(self, change: Callable[[Tensor], Tensor]) -> None:
        super()._change(change)
        if self.states is not None:
            self.states = change(self.states)


class LstmBackbone(Backbone):
    """See `Lstm`. States of the inputs' slots are the vector that they were joined to."""

    masks, caches, types = "causal", True, 0
    max_positions = 4096  # of a row; the LSTM itself has no limit

    @classmethod
    def built(cls, config: Lstm, texts: Iterable[str] | None, folder: Path | None) -> LstmBackbone:
        return cls(config, load_tokenizer(folder) if folder else train_tokenizer(texts or (), config.vocab_size))

    def __init__(self, config: Lstm, tokenizer: Any) -> None:
        super().__init__()
        self.config, self.tokenizer, width = config, tokenizer, config.hidden_size
        self.start_id, self.end_id = tokenizer.cls_token_id, tokenizer.sep_token_id
        self.mask_id, self.pad_id = tokenizer.mask_token_id, tokenizer.pad_token_id
        self.input_size = self.hidden_size = width
        self.words = nn.Embedding(len(tokenizer), width)
        self.lstm = nn.LSTM(width, width, config.num_hidden_layers, batch_first=True)
        self.dropout, self.head = nn.Dropout(config.dropout), nn.Linear(width, len(tokenizer))
        self.joint = Joint(width, config.fusion_dropout)
        self.experts = Experts(width, config.fusion_dropout, config.monte_carlo_dropout)
        drops = [module for module in self.modules() if isinstance(module, MonteCarloDropout)]
        for module in drops:
            module.place = drops.index(module)
        self.apply(initialise)

    def embed(self, ids: Tensor) -> Tensor:
        states: Tensor = self.words(ids)
        return states

    def fused(self, slots: Slots) -> Tensor | None:
        """(B, E) the inputs of rows as the LSTM's first input; None for rows without a picture."""
        config, states = self.config, slots.states
        if config.picture_input not in slots.inputs:
            return None
        picture = mean_of(states, slots.of(config.picture_input))
        cues = (config.caption_input, config.tags_input, config.place_input)
        known = [name in slots.inputs for name in cues]
        if not any(known):
            return picture
        masks = [slots.of(name) for name in cues]
        if known == [True, False, False]:
            vector: Tensor = self.joint(picture, states, masks[0])
        else:
            vector = self.experts(picture, states, *masks, torch.tensor(known, device=states.device))
        return vector

    def shortened(self, prefix: Prefix) -> Prefix:
        """The same inputs as one slot with the vector that they are joined to, so that the rows of several texts need
        not join them again; without a picture the prefix itself."""
        vector = self.fused(prefix.slots)
        if vector is None:
            return prefix
        layout = prefix_layout(torch.ones_like(prefix.free, dtype=torch.bool))
        zeros = torch.zeros_like(prefix.free)
        return replace(prefix, slots=Slots(vector.unsqueeze(1), zeros, zeros, layout))

    def encode(self, slots: Slots, cache: Cache | None = None, output: Sequence[str] = ()) -> Encoded:
        vector, is_prefix = self.fused(slots), slots.layout.role == PREFIX
        reads = slots.layout.real if vector is None else slots.layout.real & ~is_prefix
        if cache is None:
            states = self._at_once(slots.states, reads, vector)
        else:
            assert isinstance(cache, LstmCache)  # of `new_cache`
            states = self._step_by_step(slots.states, reads, vector, cache)
            cache.grow(slots.layout)
        states = self.dropout(states)
        if vector is not None:
            states = torch.where(is_prefix.unsqueeze(-1), vector.unsqueeze(1), states)
        return Encoded(states)

    def _at_once(self, states: Tensor, reads: Tensor, vector: Tensor | None) -> Tensor:
        """States (B, L, H) of the slots that are read; others have any."""
        inputs, _ = in_order(states, reads)
        if vector is not None:
            inputs = torch.cat([vector.unsqueeze(1), inputs], 1)
        outputs: Tensor = self.lstm(inputs)[0][:, int(vector is not None) :]  # (B, N, H)
        place = (reads.cumsum(1) - 1).clamp(min=0)  # (B, L) of a slot among those that are read
        return outputs.gather(1, place.unsqueeze(-1).expand(-1, -1, self.hidden_size))

    def _step_by_step(self, states: Tensor, reads: Tensor, vector: Tensor | None, cache: LstmCache) -> Tensor:
        """The same states, from the cached state on; the state after every slot is added to the cache."""
        state = cache.last
        if state is None:
            state = states.new_zeros(len(states), 2 * self.lstm.num_layers * self.hidden_size)
        if vector is not None:
            state = self._step(vector, state)
        after = []
        read = reads.any(0).tolist()
        for place, any_row in enumerate(read):
            if any_row:
                state = torch.where(reads[:, place, None], self._step(states[:, place], state), state)
            after.append(state)
        cache.append(torch.stack(after, 1))
        first = (self.lstm.num_layers - 1) * self.hidden_size  # of the uppermost layer
        return torch.stack(after, 1)[..., first : first + self.hidden_size]

    def _step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """One input (B, E) more: (B, 2 x layers x H) -> the same shape."""
        hidden, cells = (
            part.unflatten(1, (self.lstm.num_layers, -1)).transpose(0, 1).contiguous() for part in state.chunk(2, 1)
        )
        after = self.lstm(inputs.unsqueeze(1), (hidden, cells))[1]
        return torch.cat([part.transpose(0, 1).flatten(1) for part in after], 1)

    def logits(self, states: Tensor) -> Tensor:
        logits: Tensor = self.head(states)
        return logits

    def new_cache(self) -> LstmCache:
        return LstmCache()

    def save(self, folder: Path) -> None:
        self.tokenizer.save_pretrained(folder)
