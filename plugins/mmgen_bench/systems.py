"""The systems: each learns from a batch of images and writes texts for it, in its own way.

`learn` is a pass forward and back (the optimiser's step is the same for all, and left out); `write` is a whole search.
Each returns how many questions or texts that was.
"""

from __future__ import annotations

import abc
import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import BertConfig, BertLMHeadModel, EncoderDecoderConfig, EncoderDecoderModel

from mmgen.attention import Layout
from mmgen.decoding import Decoding
from mmgen.model import Model
from mmgen.parts import Backbone
from mmgen.tensors import MASK, WRITTEN, Batch, Example

from .flops import BERT2BERT, CAUSAL, NAIVE, OURS, Shape
from .workload import batch_of, encoder_of, forbid_end


class System(abc.ABC):
    """module: what is put on a device, trained, compiled."""

    name: str
    module: nn.Module

    @abc.abstractmethod
    def learn(self, chosen: Sequence[Example]) -> Callable[[], int]:
        """The work as a function to be timed; whatever a loader would have done is done here."""

    @abc.abstractmethod
    def write(self, chosen: Sequence[Example], options: Decoding, tokens: int) -> Callable[[], int]:
        """As `learn`; every text gets the same number of tokens."""

    def compile(self) -> None:
        """The encoder's own forward through torch.compile; shapes may vary."""
        self.module.compile(dynamic=True)


class Ours(System):
    name = OURS
    module: Model

    def __init__(self, model: Model, device: torch.device) -> None:
        self.module = model.to(device)
        self.device = device

    def learn(self, chosen):
        batch = batch_of(self.module, chosen).to(self.device)

        def run() -> int:
            self.module(batch).mean.backward()
            return sum(len(example.targets) for example in chosen)

        return run

    def write(self, chosen, options, tokens):
        batch = batch_of(self.module, chosen, objectives=()).to(self.device)

        def run() -> int:
            texts = self.module.generator.generate(self.module, batch, options)
            return (
                _written([text.tokens for found in texts for text in found], tokens)
                // options.num_return_sequences
                * rows_of(options)
            )

        return run

    def compile(self) -> None:
        encoder_of(self.module).base_model.compile(dynamic=True)


class Naive(Ours):
    """The paper's procedure (bertgen, section 3.2): X, y_<t and a [MASK] are encoded anew for every t. It runs on our
    own encoder and attention, and so is slower by its procedure alone."""

    name = NAIVE

    def learn(self, chosen):
        model, batch = self.module, batch_of(self.module, chosen).to(self.device)
        questions = torch.tensor(
            [model.backbone.encode_text(example.targets[0]) + [model.backbone.end_id] for example in chosen],
            device=self.device,
        )

        def run() -> int:
            for t in range(questions.shape[1]):
                states = self._encode(batch, questions[:, :t])
                (
                    F.cross_entropy(model.backbone.logits(states).float(), questions[:, t], reduction="sum")
                    / questions.numel()
                ).backward()
            return len(questions)

        return run

    def _encode(self, batch: Batch, written: Tensor) -> Tensor:
        """The [MASK]'s state behind what is written, (B, H)."""
        model, (rows, t) = self.module, written.shape
        prefix = model.prefix(batch)
        ids = torch.cat([written, written.new_full((rows, 1), model.backbone.mask_id)], 1)
        time = torch.arange(1, t + 2, device=ids.device).expand(rows, -1)
        role = torch.full_like(ids, WRITTEN)
        role[:, -1] = MASK
        tail = model.written(prefix, ids, time - 1, Layout(role, torch.ones_like(ids), time))
        return model.backbone.encode(prefix.slots.followed_by(tail)).last[:, -1]

    def write(self, chosen, options, tokens):
        run = super().write(chosen, options, tokens)
        model, kept = self.module, self.module.backbone
        without: Any = copy.copy(kept)  # the same weights
        without.caches = False
        without.states_at = functools.partial(Backbone.states_at, without)  # the whole last layer

        def naive() -> int:
            model.backbone = without
            try:
                return run()
            finally:
                model.backbone = kept

        return naive


class Front(nn.Module):
    """`[CLS] W regions [SEP] caption` for the models of transformers: the same prefix, embedded; (B, P, E)."""

    def __init__(self, model: Model, words: nn.Module, shape: Shape) -> None:
        super().__init__()
        self.words, self.start_id, self.end_id = words, model.backbone.start_id, model.backbone.end_id
        self.projection = nn.Linear(shape.features + 4, shape.width)

    def forward(self, batch: Batch) -> Tensor:
        captions = batch.inputs["caption"]["ids"]
        start, end = (
            self.words(captions.new_full((len(captions), 1), token)) for token in (self.start_id, self.end_id)
        )
        image = batch.inputs["image"]
        regions = self.projection(torch.cat([image["features"], image["boxes"]], -1))
        return torch.cat([start, regions, end, self.words(captions)], 1)


class Theirs(System):
    """What both models of transformers share: a question is a row, and an image's prefix is embedded once."""

    def __init__(self, ours: Model, network: Any, words: nn.Module, shape: Shape, device: torch.device) -> None:
        self.ours, self.network, self.device = ours, network, device
        self.front = Front(ours, words, shape)
        self.module = nn.ModuleList([network, self.front]).to(device)

    def learn(self, chosen):
        batch = batch_of(self.ours, chosen).to(self.device)
        backbone, questions = self.ours.backbone, len(chosen[0].targets)
        labels = torch.tensor(
            [backbone.encode_text(text) + [backbone.end_id] for example in chosen for text in example.targets],
            device=self.device,
        )
        told = torch.cat([torch.full_like(labels[:, :1], backbone.start_id), labels[:, :-1]], 1)

        def run() -> int:
            prefix = self.front(batch).repeat_interleave(questions, 0)
            F.cross_entropy(self.logits(prefix, told).float().flatten(0, 1), labels.flatten()).backward()
            return len(labels)

        return run

    @abc.abstractmethod
    def logits(self, prefix: Tensor, told: Tensor) -> Tensor:
        """prefix (B, P, E), [CLS] y_1..y_(T-1) (B, T) -> (B, T, V)."""

    def write(self, chosen, options, tokens):
        batch = batch_of(self.ours, chosen, objectives=()).to(self.device)
        backbone, beams = self.ours.backbone, options.num_beams
        wanted = {
            "num_beams": beams,
            "do_sample": options.do_sample,
            "num_return_sequences": options.num_return_sequences,
            "top_k": 0 if options.do_sample else None,
        }
        special = {"bos_token_id": backbone.start_id, "eos_token_id": backbone.end_id, "pad_token_id": backbone.pad_id}

        def run() -> int:
            prefix = self.front(batch)
            found = self.network.generate(
                inputs_embeds=prefix, max_new_tokens=tokens, **wanted, **special, **self.more(prefix)
            )
            return _written(found[:, -tokens:].tolist(), tokens) // options.num_return_sequences * rows_of(options)

        return run

    def more(self, prefix: Tensor) -> dict:
        """Arguments of `generate` that only one of them has."""
        return {}

    def compile(self) -> None:
        self.network.compile(dynamic=True)


class Bert2Bert(Theirs):
    """`EncoderDecoderModel` of two BERTs."""

    name = BERT2BERT

    def __init__(self, ours: Model, shape: Shape, device: torch.device, dropout: float | None) -> None:
        config = EncoderDecoderConfig.from_encoder_decoder_configs(
            sizes(ours, shape, dropout), sizes(ours, shape, dropout)
        )
        network: Any = EncoderDecoderModel(config)
        forbid_end(network.decoder.get_output_embeddings(), ours.backbone.end_id)
        super().__init__(ours, network, network.encoder.get_input_embeddings(), shape, device)

    def logits(self, prefix, told):
        return self.network(inputs_embeds=prefix, decoder_input_ids=told).logits

    def more(self, prefix):
        return {"decoder_start_token_id": self.ours.backbone.start_id}


class Causal(Theirs):
    """`BertLMHeadModel`: the prefix and the question in one row, every slot sees those before it."""

    name = CAUSAL

    def __init__(self, ours: Model, shape: Shape, device: torch.device, dropout: float | None) -> None:
        config = sizes(ours, shape, dropout)
        config.is_decoder = True
        network: Any = BertLMHeadModel(config)
        forbid_end(network.get_output_embeddings(), ours.backbone.end_id)
        super().__init__(ours, network, network.get_input_embeddings(), shape, device)

    def logits(self, prefix, told):
        row = torch.cat([prefix, self.front.words(told[:, 1:])], 1)
        states = self.network.bert(
            inputs_embeds=row
        ).last_hidden_state  # the head sees predicted slots only, as ours does
        return self.network.cls(states[:, prefix.shape[1] - 1 :])


def sizes(ours: Model, shape: Shape, dropout: float | None) -> BertConfig:
    """Of our own encoder: the same layers, width, heads and vocabulary."""
    own: dict[str, Any] = (
        {} if dropout is None else {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    )
    return BertConfig(
        vocab_size=encoder_of(ours).config.vocab_size,
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=4 * shape.width,
        pad_token_id=ours.backbone.pad_id,
        **own,
    )


def rows_of(options: Decoding) -> int:
    """Texts that are written side by side for one image: beams or samples."""
    return max(options.num_beams, options.num_return_sequences)


def _written(texts: Sequence[Sequence[int]], tokens: int) -> int:
    """How many texts; every one must have the same length, or times would not compare."""
    if any(len(text) != tokens for text in texts):
        raise RuntimeError(f"texts of {sorted({len(text) for text in texts})} tokens where {tokens} were to be written")
    return len(texts)
