"""The compared systems, ours among them: each trains on a batch and generates texts by a different procedure.

The work of `prepare_training` is a forward and a backward pass (the optimiser's step, the same for all, is left out);
the work of `prepare_generation` is a complete search. Both return the number of questions or texts.
"""

from __future__ import annotations

import abc
import copy
import functools
from collections.abc import Callable, Mapping, Sequence
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
    """A system to be timed. `module` is what is moved to a device, trained and compiled."""

    name: str
    module: nn.Module

    @abc.abstractmethod
    def prepare_training(self, examples: Sequence[Example]) -> Callable[[], int]:
        """A function to be timed; the work of a data loader is already done before the function is returned."""

    @abc.abstractmethod
    def prepare_generation(self, examples: Sequence[Example], options: Decoding, tokens: int) -> Callable[[], int]:
        """Like `prepare_training`, for a search in which every text has `tokens` tokens."""

    def compile(self) -> None:
        """Compile the encoder's forward with torch.compile, for varying shapes."""
        self.module.compile(dynamic=True)


class Ours(System):
    name = OURS
    module: Model

    def __init__(self, model: Model, device: torch.device) -> None:
        self.module = model.to(device)
        self.device = device

    def prepare_training(self, examples):
        batch = batch_of(self.module, examples).to(self.device)

        def run() -> int:
            self.module(batch).mean.backward()
            return sum(len(example.targets) for example in examples)

        return run

    def prepare_generation(self, examples, options, tokens):
        batch = batch_of(self.module, examples, objectives=()).to(self.device)

        def run() -> int:
            texts = self.module.generator.generate(self.module, batch, options)
            return (
                _count_texts([generation.tokens for generations in texts for generation in generations], tokens)
                // options.num_return_sequences
                * count_rows(options)
            )

        return run

    def compile(self) -> None:
        encoder_of(self.module).base_model.compile(dynamic=True)


class Naive(Ours):
    """The paper's procedure (bertgen, section 3.2): X, y_<t and a [MASK] are encoded again for every t. It runs on our
    encoder and attention, so only the procedure makes it slower."""

    name = NAIVE

    def prepare_training(self, examples):
        model, batch = self.module, batch_of(self.module, examples).to(self.device)
        questions = torch.tensor(
            [model.backbone.encode_text(example.targets[0]) + [model.backbone.end_id] for example in examples],
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
        """State of a [MASK] that follows the tokens `written` so far: (B, T) -> (B, H)."""
        model, (rows, t) = self.module, written.shape
        prefix = model.prefix(batch)
        ids = torch.cat([written, written.new_full((rows, 1), model.backbone.mask_id)], 1)
        time = torch.arange(1, t + 2, device=ids.device).expand(rows, -1)
        role = torch.full_like(ids, WRITTEN)
        role[:, -1] = MASK
        tail = model.written(prefix, ids, time - 1, Layout(role, torch.ones_like(ids), time))
        return model.backbone.encode(prefix.slots.followed_by(tail)).last[:, -1]

    def prepare_generation(self, examples, options, tokens):
        run = super().prepare_generation(examples, options, tokens)
        model, backbone = self.module, self.module.backbone
        uncached: Any = copy.copy(backbone)  # the same weights
        uncached.caches = False
        uncached.states_at = functools.partial(Backbone.states_at, uncached)  # the whole last layer

        def run_uncached() -> int:
            model.backbone = uncached
            try:
                return run()
            finally:
                model.backbone = backbone

        return run_uncached


class Front(nn.Module):
    """Embeddings (B, P, E) of the same prefix, `[CLS] W regions [SEP] caption`, for the models of transformers."""

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


class TransformersSystem(System):
    """Base of both models of transformers: a question is a row, and an image's prefix is embedded once."""

    def __init__(self, ours: Model, network: Any, words: nn.Module, shape: Shape, device: torch.device) -> None:
        self.ours, self.network, self.device = ours, network, device
        self.front = Front(ours, words, shape)
        self.module = nn.ModuleList([network, self.front]).to(device)

    def prepare_training(self, examples):
        batch = batch_of(self.ours, examples).to(self.device)
        backbone, questions = self.ours.backbone, len(examples[0].targets)
        target_ids = torch.tensor(
            [backbone.encode_text(text) + [backbone.end_id] for example in examples for text in example.targets],
            device=self.device,
        )
        decoder_ids = torch.cat([torch.full_like(target_ids[:, :1], backbone.start_id), target_ids[:, :-1]], 1)

        def run() -> int:
            prefix = self.front(batch).repeat_interleave(questions, 0)
            F.cross_entropy(self.logits(prefix, decoder_ids).float().flatten(0, 1), target_ids.flatten()).backward()
            return len(target_ids)

        return run

    @abc.abstractmethod
    def logits(self, prefix: Tensor, decoder_ids: Tensor) -> Tensor:
        """prefix (B, P, E), [CLS] y_1..y_(T-1) (B, T) -> (B, T, V)."""

    def prepare_generation(self, examples, options, tokens):
        batch = batch_of(self.ours, examples, objectives=()).to(self.device)
        backbone, beams = self.ours.backbone, options.num_beams
        search_options = {
            "num_beams": beams,
            "do_sample": options.do_sample,
            "num_return_sequences": options.num_return_sequences,
            "top_k": 0 if options.do_sample else None,
        }
        special_ids = {
            "bos_token_id": backbone.start_id,
            "eos_token_id": backbone.end_id,
            "pad_token_id": backbone.pad_id,
        }

        def run() -> int:
            prefix = self.front(batch)
            token_ids = self.network.generate(
                inputs_embeds=prefix,
                max_new_tokens=tokens,
                **search_options,
                **special_ids,
                **self.extra_arguments(prefix),
            )
            return (
                _count_texts(token_ids[:, -tokens:].tolist(), tokens)
                // options.num_return_sequences
                * count_rows(options)
            )

        return run

    def extra_arguments(self, prefix: Tensor) -> dict:
        """Arguments of `generate` that only one of the two models needs."""
        return {}

    def compile(self) -> None:
        self.network.compile(dynamic=True)


class Bert2Bert(TransformersSystem):
    """`EncoderDecoderModel` of two BERTs."""

    name = BERT2BERT

    def __init__(self, ours: Model, shape: Shape, device: torch.device, dropout: float | None) -> None:
        config = EncoderDecoderConfig.from_encoder_decoder_configs(
            bert_config(ours, shape, dropout), bert_config(ours, shape, dropout)
        )
        network: Any = EncoderDecoderModel(config)
        forbid_end(network.decoder.get_output_embeddings(), ours.backbone.end_id)
        super().__init__(ours, network, network.encoder.get_input_embeddings(), shape, device)

    def logits(self, prefix, decoder_ids):
        return self.network(inputs_embeds=prefix, decoder_input_ids=decoder_ids).logits

    def extra_arguments(self, prefix):
        return {"decoder_start_token_id": self.ours.backbone.start_id}


class Causal(TransformersSystem):
    """`BertLMHeadModel`: prefix and question in one row; every slot sees the slots before it."""

    name = CAUSAL

    def __init__(self, ours: Model, shape: Shape, device: torch.device, dropout: float | None) -> None:
        config = bert_config(ours, shape, dropout)
        config.is_decoder = True
        network: Any = BertLMHeadModel(config)
        forbid_end(network.get_output_embeddings(), ours.backbone.end_id)
        super().__init__(ours, network, network.get_input_embeddings(), shape, device)

    def logits(self, prefix, decoder_ids):
        row = torch.cat([prefix, self.front.words(decoder_ids[:, 1:])], 1)
        states = self.network.bert(
            inputs_embeds=row
        ).last_hidden_state  # the head is applied to predicted slots only, as in ours
        return self.network.cls(states[:, prefix.shape[1] - 1 :])


def bert_config(ours: Model, shape: Shape, dropout: float | None) -> BertConfig:
    """A config with the layers, width, heads and vocabulary of our encoder."""
    rates: dict[str, Any] = (
        {} if dropout is None else {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    )
    return BertConfig(
        vocab_size=encoder_of(ours).config.vocab_size,
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=4 * shape.width,
        pad_token_id=ours.backbone.pad_id,
        **rates,
    )


def count_rows(options: Decoding) -> int:
    """Number of texts generated together for one image: beams or samples."""
    return max(options.num_beams, options.num_return_sequences)


def _count_texts(texts: Sequence[Sequence[int]], tokens: int) -> int:
    """Number of texts. Raises RuntimeError if their lengths differ, since times would not be comparable."""
    if any(len(text) != tokens for text in texts):
        raise RuntimeError(f"expected texts of {tokens} tokens but got {sorted({len(text) for text in texts})}")
    return len(texts)


def our_model(systems: Mapping[str, System]) -> Model:
    """Our model among the systems; its vocabulary provides the words of all examples."""
    ours = systems[OURS]
    assert isinstance(ours, Ours)
    return ours.module
