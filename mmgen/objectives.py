"""Objectives and generators: contracts of target readers, losses, predictions and texts.

Objectives are what a step trains. Generators are objectives that also write. Shape letters are those of
`mmgen.tensors`.

An objective has two halves. Its `reader`, a `TargetReader`, runs in loader workers: it has no parameters, and says what
is to be predicted and over how many things each loss is a sum. The objective itself is a `torch.nn.Module`, and may
have a head.
"""

from __future__ import annotations

import abc
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .configs import PROMPT
from .errors import DataError, UnavailableError
from .examples import LOG_PROBABILITY, Example, Generation, Prediction, ResolvedExample, ScoreKind
from .parts import Backbone, Part, Reader
from .prompts import PROMPT_COUNTS, behind_prompts, padded, prompts_of
from .sequence import Sequencer
from .tensors import Batch, Hiding, Loss, Tail, Targets, apply

HEAD_SLOTS = 1024  # predicted slots per call of the vocabulary head, to limit the memory of logits
MASK_NAME = "[MASK]"  # a blank in partly written texts, whatever the tokenizer's mask token is
REMEMBERED = 300_000  # texts whose tokens are kept; VQA has 250,000 questions to learn from


def _random_at(place: int, /, *more: str) -> random.Random:
    return random.Random("/".join([str(place), *more]) if more else place)


@dataclass(frozen=True)
class Rows:
    """B rows whose targets are to be collated.

    examples  one per row
    draw      `draw(place: int) -> random.Random` for the row at a place of `examples`: a function of (seed, step,
              epoch, example, objective), created on demand. `draw(place, target: str)` also depends on the text of the
              target, and so does not change if the targets of an example are split over batches
    hidden    input name -> (B, N) or (B, N, C): the labels of what `Reader.hide` masked for this objective, else -100
    inputs    input name -> its collated input (`Batch.inputs`), for example the regions to choose from
    readers   input name -> its reader, for inputs of other examples
    candidates  the step's training examples, for exemplars and neighbours; in validation too. Only for readers that
                say so (`TargetReader.reads_candidates`)
    """

    examples: Sequence[ResolvedExample]
    draw: Callable[..., random.Random] = _random_at
    hidden: Mapping[str, Tensor] = field(default_factory=dict)
    inputs: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)
    readers: Mapping[str, Reader] = field(default_factory=dict)
    candidates: Sequence[Example] = ()


class TargetReader(abc.ABC):
    """The half of an objective that runs in loader workers: it has no parameters and is picklable.

    losses            names of the losses that it counts and that the objective sums up
    reads_candidates  whether `collate` reads `Rows.candidates`, which are empty otherwise
    """

    losses: ClassVar[tuple[str, ...]] = ("loss",)
    reads_candidates: ClassVar[bool] = False

    @property
    def makes_rows(self) -> bool:
        """Whether it overrides `rows`; at most one objective of a step may."""
        return type(self).rows is not TargetReader.rows

    def rows(self, example: Example, draw: random.Random, draw_other: Callable[[], Example]) -> Sequence[Example]:
        """The rows that an example becomes, before one of each input's alternatives is chosen; by default itself.
        `draw_other()` draws an example of another picture."""
        return [example]

    def hides(self, readers: Mapping[str, Reader]) -> Mapping[str, Hiding]:
        """The step's inputs that it masks, and how. By default none."""
        return {}

    @abc.abstractmethod
    def collate(self, rows: Rows) -> Targets:
        """The targets of B rows, with a count for each of `losses`. Raises DataError for an example that lacks a
        label, DataError for one that cannot be used."""

    def ask(self, rows: Rows) -> Targets:
        """What `predict` needs beside the inputs for B rows whose labels are unknown; by default nothing."""
        return Targets({})

    def pairs(self, example: Example) -> int:
        """How much an example counts in `batch_size`: 1 by default."""
        return 1

    def length(self, example: Example) -> float:
        """About how many slots behind the prefix an example takes. Examples of similar length share batches."""
        return 0


class TextTargets(TargetReader):
    """Targets that are texts: tokens, cut to a limit, the end last. A subclass says how they are laid out.

    max_tokens     tokens of a target, its end included
    reads_prompts  whether `Generator.generate` writes behind prompts (`mmgen.prompts.Prompts`); `collate` lays them
                   out before any targets. Its config then has "prompt" in `query_labels`
    """

    reads_prompts: ClassVar[bool] = False

    def __init__(self, backbone: Backbone, max_tokens: int) -> None:
        self.encode, self.end_id, self.max_tokens = backbone.text_encoder, backbone.end_id, max_tokens
        self.pad_id, self.mask_id = backbone.pad_id, backbone.mask_id
        self._known: dict[str, list[int]] = {}  # tokens of targets: the same ones come again every epoch

    @abc.abstractmethod
    def lay_out(self, targets: Sequence[Sequence[Sequence[int]]]) -> Tail:
        """B x K targets, each a list of token ids with its end, as slots behind the prefix."""

    def slots(self, tokens: int) -> int:
        """How many slots `lay_out` gives a target of T tokens, its end included. By default T."""
        return tokens

    def lay_out_blanks(self, texts: Sequence[Sequence[int]]) -> Tail:
        """K texts with `mask_id` at blanks in one row, as slots that predict the first blank of each."""
        return self.lay_out([[text[: text.index(self.mask_id) + 1] for text in texts]])

    def collate(self, rows: Rows) -> Targets:
        self._tokenise([text for example in rows.examples for text in example.targets])  # one call is cheaper than many
        tail, labels = self.lay_out([self.targets(example) for example in rows.examples]), dict[str, Tensor]()
        if any(prompts := [self._tokenise(prompts_of(example)) for example in rows.examples]):
            labels = {PROMPT: padded(prompts)}
            tail = behind_prompts(tail, labels[PROMPT], self.pad_id)
        return Targets({"loss": int((tail.labels != -100).sum())}, labels, tail)

    def ask(self, rows: Rows) -> Targets:
        """If it reads prompts, those of queries, each once: "prompt" (B, K, C), and "prompt_counts" (B,)."""
        labels: dict[str, Tensor] = {}
        if not self.reads_prompts:
            return Targets({})
        if any(texts := [list(dict.fromkeys(prompts_of(example))) for example in rows.examples]):
            labels[PROMPT] = padded([self._tokenise(prompts) for prompts in texts])
            labels[PROMPT_COUNTS] = torch.tensor([max(1, len(prompts)) for prompts in texts])
        return Targets({}, labels)

    def pairs(self, example: Example) -> int:
        return len(example.targets)

    def targets(self, example: Example) -> list[list[int]]:
        """Token ids of an example's targets, cut to the limit, the end token last."""
        if not example.targets:
            raise DataError(f"example '{example.id}' has no target to train on")
        if PROMPT in example.labels and not self.reads_prompts:
            raise DataError(
                f"example '{example.id}' has a prompt, which this generator does not read; use a generator that does, "
                "such as masked, or leave the prompts out"
            )
        return [tokens[: self.max_tokens - 1] + [self.end_id] for tokens in self._tokenise(example.targets)]

    def length(self, example: Example) -> float:
        tokens = [min(self.encode.count(text) + 1, self.max_tokens) for text in example.targets]
        return sum(map(self.slots, tokens)) + sum(map(self.encode.count, prompts_of(example)))

    def with_blanks(self, text: Any) -> list[int]:
        """The tokens of a partly written text, without its end: the mask token for each [MASK]. Raises DataError."""
        if not isinstance(text, str):
            raise DataError(f"'text' must be a string with {MASK_NAME} where a token is missing, not {text!r:.40}")
        first, *rest = text.split(MASK_NAME)
        tokens = self._piece(first)
        for piece in rest:
            tokens += [self.mask_id, *self._piece(piece)]
        if not rest:
            raise DataError(f"'text' has no gap ({text!r:.60}); write {MASK_NAME} for each token to fill in")
        if len(tokens) >= self.max_tokens:
            raise DataError(
                f"'text' has {len(tokens)} tokens, but max_tokens is {self.max_tokens}, including the end; use a "
                "shorter text"
            )
        return tokens

    def _piece(self, text: str) -> list[int]:
        """The tokens of a piece between gaps. A blank at its end would be a token of its own for some tokenizers.
        Raises DataError for unknown words, which would be lost in the text."""
        (tokens,) = self.encode([text.rstrip()])
        unknown = self.encode.special_ids
        if not unknown.isdisjoint(tokens):
            word = next((word for word in text.split() if not unknown.isdisjoint(self.encode([word])[0])), text)
            raise DataError(f"'text' has {word!r:.60}, which the encoder's vocabulary cannot write; replace it")
        return tokens

    def _tokenise(self, texts: Sequence[str]) -> list[list[int]]:
        if len(self._known) > REMEMBERED:
            self._known.clear()
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known.update(zip(new, self.encode(new), strict=True))
        return [self._known[text] for text in texts]


class Objective(Part, abc.ABC):
    """What a step trains. It may have parameters (a head)."""

    reader: TargetReader

    def init_from_model(self, model: Sequencer) -> None:
        """Initialises parameters from other parts of the model. Called once, in the first step that trains the
        objective, after the weights that the step starts from are loaded. A resumed run does not call it, so what it
        fills must exist since `build`. By default nothing changes."""
        return

    def hidden_layer(self) -> nn.Linear | None:
        """The layer (H, H) between states and the head's last layer, if the config has `exports_weights`."""
        return None

    @abc.abstractmethod
    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        """The sum of every loss that the reader counts. A row's loss must not depend on the other rows, unless the
        config has `over_batch`."""

    def predict(self, model: Sequencer, batch: Batch, targets: Targets) -> list[Prediction]:
        """One prediction for each of `batch.ids`: a value, JSON of the kind that the config `gives`, and a score, its
        confidence. `targets`: of `TargetReader.ask`. Only for objectives that give something."""
        raise NotImplementedError


class Generator(Objective):
    """An objective that can also write, and say how probable a text is.

    needs              what it needs of `Backbone.masks`: "any", or "causal" if left to right is enough
    reads_as_laid_out  whether training reads the rows of `TextTargets.lay_out` unchanged. If not (`collate` or
                       `forward` masks words, or draws an order), attention maps and probes refuse
    score_kind         what the score of a text is: "log-probability", or "confidence" (0 to 1)
    likelihood_kind    what `likelihood` is: "exact", or in words
    blanks_read        what `blank_states` reads beside the inputs: "what stands before", or "all other words"
    """

    reader: TextTargets
    needs: ClassVar[Literal["any", "causal"]] = "any"
    reads_as_laid_out: ClassVar[bool] = True
    score_kind: ClassVar[ScoreKind] = LOG_PROBABILITY
    likelihood_kind: ClassVar[str] = "exact"
    blanks_read: str = "what stands before"

    @property
    def max_tokens(self) -> int:
        """Tokens of a text, its end included, in training and in generation."""
        return self.reader.max_tokens

    @abc.abstractmethod
    def generate(self, model: Sequencer, batch: Batch, options: Any) -> list[list[Generation]]:
        """`options.texts` texts for each of the B examples, best first; for each prompt of an example in order, if it
        has prompts. Draws with the examples' `batch.seeds` (`mmgen.sampling`), so that a text is the same alone and in
        a batch. Obeys every option, or raises UnavailableError. `options`: of the class
        `mmgen.configs.GeneratorConfig.decoding`."""

    def predicting_states(self, model: Sequencer, batch: Batch, tail: Tail) -> tuple[Tensor, Tensor]:
        """The states (n, H) of a tail's slots that predict, and the tokens (n,) to predict, in the order of the tail's
        rows."""
        rows, target_ids = model.rows(batch, tail)
        predicted = target_ids != -100
        return model.backbone.states_at(rows, predicted), target_ids[predicted]

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        assert targets.tail is not None  # laid out by the reader
        states, target_ids = self.predicting_states(model, batch, targets.tail)
        return Loss({"loss": -log_probabilities(model.backbone, states, target_ids).sum()})

    def likelihood(self, model: Sequencer, batch: Batch, examples: Sequence[Example]) -> Tensor:
        """(n,) the log-probability of every token of all targets of B examples, in order, given the inputs and the
        tokens before it. `batch`: of the examples, as for training. Raises UnavailableError for a generator whose loss
        is another (`reads_as_laid_out`)."""
        tail = batch.tail
        if tail is None or not self.reads_as_laid_out:
            raise UnavailableError(f"{type(self).__name__} does not say how probable a text is")
        return log_probabilities(model.backbone, *self.predicting_states(model, batch, tail))

    def blank_states(self, model: Sequencer, batch: Batch, texts: Sequence[Sequence[int]]) -> Tensor:
        """(K, H) the states that predict the first blank of each of K texts for the input of a batch of one, behind its
        prompt: token ids with `mask_id` at blanks, the end last. Raises UnavailableError if the generator cannot."""
        if not self.reads_as_laid_out and type(self.reader).lay_out_blanks is TextTargets.lay_out_blanks:
            raise UnavailableError(f"{type(self).__name__} fills no blanks")
        tail = apply(self.reader.lay_out_blanks(texts), lambda tensor: tensor.to(model.device))
        if (prompts := batch.label(PROMPT)) is not None:
            tail = behind_prompts(tail, prompts[:, :1].expand(-1, int(tail.layout.group.max()), -1), self.reader.pad_id)
        states, target_ids = self.predicting_states(model, batch, tail)
        return states[target_ids == self.reader.mask_id]


def log_probabilities(backbone: Backbone, states: Tensor, target_ids: Tensor) -> Tensor:
    """(n,) log-probabilities of tokens (n,) at slots with these states (n, H)."""

    def chunk(states: Tensor, target_ids: Tensor) -> Tensor:
        return -F.cross_entropy(backbone.logits(states).float(), target_ids, reduction="none")

    pieces = [slice(first, first + HEAD_SLOTS) for first in range(0, max(1, len(states)), HEAD_SLOTS)]
    chunks = [(states[piece], target_ids[piece]) for piece in pieces]
    if len(chunks) == 1:
        return chunk(*chunks[0])
    # checkpointing: the backward pass computes the logits again instead of storing them
    return torch.cat([checkpoint(chunk, *part, use_reentrant=False) for part in chunks])
