"""Contracts of the parts that plugins provide, but for objectives (`mmgen.objectives`). Shape letters are those of
`mmgen.tensors`. Embedders and backbones are plain `torch.nn.Module`s; nothing here needs the framework."""

from __future__ import annotations

import abc
import random
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from torch import Tensor, nn

from .cards import Card
from .errors import DataError, UnavailableError
from .progress import Progress
from .tensors import Encoded, Example, Generation, Hiding, ResolvedExample, Scores, Segment, Slots

if TYPE_CHECKING:
    import numpy as np

    from .attention import Cache
    from .features.classes import Classes


class Part(nn.Module):
    """What embedders, backbones and objectives have in common."""

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """What of weights that somebody published is this part's: name of a parameter of its own -> tensor. By default
        nothing. A tensor that is looked at (`weights[name]`) counts as taken; the names of all others are listed."""
        return {}


class Reader(abc.ABC):
    """The part of an embedder that runs in loader workers: no parameters, and it can be pickled. `hides`: what `hide`
    hides of the input; None where it hides nothing."""

    hides: ClassVar[Literal["words", "regions"] | None] = None

    @abc.abstractmethod
    def read(self, example: ResolvedExample) -> Any:
        """What the embedder needs of one example (arrays, token ids), the same every time. Raises
        MissingInput for a field that the example lacks, DataError for what cannot be read."""

    @abc.abstractmethod
    def collate(self, items: Sequence[Any]) -> dict[str, Tensor]:
        """B items of `read` as padded tensors, the keyword arguments of `Embedder.forward`."""

    def hide(self, item: Any, draw: random.Random, hiding: Hiding) -> tuple[Any, Tensor]:
        """An item of `read` with parts of it hidden, and what stood there: (N,) or (N, C) labels, -100 at slots that
        are not to be predicted. The item itself stays as it is."""
        raise NotImplementedError(f"{type(self).__name__} hides nothing")

    def slots(self, example: ResolvedExample) -> float:
        """About how many slots the input takes, told without reading features: like examples share batches."""
        return 0

    def find_gaps(self, examples: Sequence[Example]) -> None:
        """Raises DataError for examples that `read` would refuse (images without features), found without reading them
        all. A run asks before it learns. By default nothing is looked at."""
        return


class Embedder(Part, abc.ABC):
    """One input of an example as states of the backbone's `input_size`. Owns what is learnt about its modality.
    One that needs the backbone (its word embeddings) keeps it in a list, `self._backbone = [backbone]`: as an attribute
    it would be a submodule, saved twice, and learn with the input."""

    reader: Reader

    @abc.abstractmethod
    def forward(self, *args: Any, **collated: Any) -> Segment:
        """What `reader.collate` made of B examples -> states (B, N, E), mask (B, N) and what else a `Segment` may say.
        Padded slots are masked, and change nothing: a row's states do not depend on the other rows."""

    def add(self, slots: Slots, collated: Mapping[str, Tensor] | None, name: str) -> Tensor | None:
        """What is added to the states of whole rows, slots of others too: (B, L, E); by default nothing. `collated` is
        None where the rows lack this input. `slots.of(name)` are its own; `slots.index` tells which of them each is."""

    def tail_term(self, slots: Slots, collated: Mapping[str, Tensor] | None) -> Tensor | None:
        """What is added to the state of everything that is written behind the rows: (B, E); by default nothing."""

    def inferred_settings(self) -> dict[str, Any]:
        """Fields of the config whose values come from files, such as the width of features. A run saves them, so
        that it can be loaded without the files."""
        return {}

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        """What masked parts of the input can be, by name: "classes" of regions. Objectives get them as
        "<input>.<name>" (`ObjectiveConfig.build`)."""
        return {}

    def describe(self, example: ResolvedExample) -> dict[str, Any]:
        """How reports and probes show the N slots; all keys are optional: {"names": [N texts], "boxes": [N, relative],
        "scores": [N], "regions": [N bool]}; for a text also "text", "spans": [N [first character, end]]."""
        return {}


class Backbone(Part, abc.ABC):
    """A pretrained encoder with its tokenizer and its masked-language-model head."""

    input_size: int  # E, the width of word embeddings (which may be narrower than the states)
    hidden_size: int  # H, the width of states
    max_positions: int  # longest row, in positions
    types: int = 2  # how many token types it has; 0 where it has none, and does not look at `Slots.types`
    extra_positions: int = 0  # how many rows its table of positions has besides: `Slots.positions` -1, -2, ...
    masks: ClassVar[Literal["any", "causal"]] = "any"  # an attention mask is obeyed, or slots are read left to right
    caches: bool  # encode fills and uses the cache that `new_cache` makes
    tokenizer: Any  # of transformers, or one that is called and decodes like it
    start_id: int  # [CLS], <s>
    end_id: int  # [SEP], </s>: parts the inputs and ends a text, the paper's [EOS]
    mask_id: int
    pad_id: int

    @abc.abstractmethod
    def embed(self, ids: Tensor) -> Tensor:
        """Word embeddings alone, without position, type and normalisation: (B, L) -> (B, L, E)."""

    @abc.abstractmethod
    def encode(self, slots: Slots, cache: Cache | None = None, output: Sequence[str] = ()) -> Encoded:
        """Rows through the encoder. With a cache, `slots` follow those remembered in it, see them as
        `mmgen.attention.visible` tells, and are remembered too. `output` may name "hidden" and "attentions"."""

    def states_at(self, slots: Slots, mask: Tensor, cache: Cache | None = None) -> Tensor:
        """Last states of the slots that `mask` (B, L) marks, row by row: (n, H). An encoder may save the work that its
        last layer would do for the others; the cache keeps them."""
        return self.encode(slots, cache).last[mask]

    @abc.abstractmethod
    def logits(self, states: Tensor) -> Tensor:
        """The masked-language-model head: (..., H) -> (..., V)."""

    def add_pooler(self) -> None:
        """Makes `pooled` possible: a dense layer, learnt with the backbone. Called once, where a model's objectives ask
        for it. By default its weights are fresh (normal, deviation 0.02)."""
        dense = nn.Linear(self.hidden_size, self.hidden_size)
        nn.init.normal_(dense.weight, std=0.02)
        nn.init.zeros_(dense.bias)
        self.pooler = nn.Sequential(OrderedDict(dense=dense, activation=nn.Tanh()))

    def pooled(self, states: Tensor) -> Tensor:
        """(B, H): BERT's pooled state of rows (B, L, H), of their first slots. Only behind `add_pooler`."""
        return cast(Tensor, self.pooler(states[:, 0]))

    def set_gradient_checkpointing(self, enabled: bool) -> None:
        """Recompute the layers' activations in the backward pass of training, or keep them. Only enabled where the
        config has `supports_gradient_checkpointing`."""
        if enabled:
            raise NotImplementedError(f"{type(self).__name__} cannot recompute its layers")

    def set_torch_compile(self, enabled: bool) -> None:
        """Run the layers through `torch.compile`, or as they are. Only enabled where the config has
        `supports_torch_compile`. Names of parameters stay the same."""
        if enabled:
            raise NotImplementedError(f"{type(self).__name__} cannot compile its layers")

    def new_cache(self) -> Cache:
        """An empty cache; only for backbones with `caches`."""
        raise NotImplementedError(f"{type(self).__name__} does not cache")

    @abc.abstractmethod
    def save(self, folder: Path) -> None:
        """Everything but the weights (sizes, tokenizer), so that `BackboneConfig.build(folder=folder)` finds it."""

    def encode_text(self, text: str) -> list[int]:
        """Token ids of a text, without special tokens."""
        return list(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def decode_text(self, ids: Iterable[int]) -> str:
        """The text of token ids, special tokens left out."""
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=True)
        return text.strip()


@dataclass(frozen=True)
class Picture:
    """A raw image on its way into a feature store. `load` alone opens its file, in any thread, one after another."""

    key: str
    load: Any  # () -> PIL.Image.Image, RGB
    boxes: Sequence[Sequence[float]] | None = None  # R x (x0, y0, x1, y1) relative to the image, where known
    region_names: Sequence[str] | None = None  # R texts, if known
    classes: Classes | None = None  # of the R boxes, where known


@dataclass(frozen=True)
class Record:
    """The features of one image."""

    key: str
    features: np.ndarray  # (R, D) float
    boxes: np.ndarray | None = None  # (R, 4) float32 (x0, y0, x1, y1), relative to the image's size
    region_names: tuple[str, ...] | None = None  # R texts
    scores: np.ndarray | None = None  # (R,) float32, the detector's confidence
    classes: Classes | None = None  # the surest classes of each region, with probabilities


@dataclass(frozen=True)
class FailedImage:
    """An image whose features cannot be had; it is listed and the others go on."""

    key: str
    reason: str


class Extractor(abc.ABC):
    """Makes records for a feature store: detectors, CNN grids, importers of published files. `fingerprint`: what made
    the features (name, hash of the weights, settings); two stores with equal ones can be mixed."""

    fingerprint: Mapping[str, Any]

    @abc.abstractmethod
    def records(
        self, source: Iterable[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> Iterator[Record | FailedImage]:
        """One record an image, but for the keys in `skip` (a store that is being continued). Constant memory."""

    def count(self, source: Iterable[Picture] | Path) -> int | None:
        """How many images there are, where that is known beforehand; for progress bars only."""
        return len(source) if isinstance(source, Sized) else None


class Dataset(abc.ABC):
    """Examples in named splits: the same every time, ids unique over all splits."""

    @abc.abstractmethod
    def splits(self) -> tuple[str, ...]:
        """Names of the splits there are."""

    @abc.abstractmethod
    def split(self, name: str) -> Sequence[Example]:
        """The examples of a split. Raises DataError for a name there is not."""

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        """What there is to choose from, by the name of a label: the 3,129 answers of VQA. A run saves them."""
        return {}

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """Counts, licence, where to get it; "published": the paper's rows, where the data set is the paper's."""

    def lacking(self, split: str) -> Mapping[str, Sequence[str]]:
        """What its files lack of a split -> images: {"without_caption": ["123"]}; left out of the examples, or not."""
        return {}

    def pictures(self) -> Iterable[Picture]:
        """Raw images of all splits, each key once; for extracting features and for reports."""
        raise DataError("this data set has no raw images; give the embedder a file of features")


class Metric(abc.ABC):
    """Scores texts, or whatever else its config says it `judges`."""

    @abc.abstractmethod
    def score(self, generations: Sequence[Any], examples: Sequence[Example]) -> Scores:
        """One `tensors.Generation` an example, in the same order; references are the examples' targets. A metric of
        other kinds gets `tensors.Prediction`s; both have a `value`."""

    def references(self, examples: Sequence[Example]) -> Scores | None:
        """The scores of the references themselves, for the row "people" of the table; scores named "chance_<name>" are
        those of the row "chance". None, the default: the metric has no such scores."""
        return None


def _no_texts(model: Any, examples: Sequence[Example]) -> list[list[Generation]]:
    raise UnavailableError("this step cannot write")


@dataclass(frozen=True)
class TrainedStep:
    """A step of a run, as probes see it. `load` reads its weights: a probe holds one model at a time."""

    name: str
    load: Any  # () -> mmgen.model.Model in eval mode, on the device to use
    inputs: tuple[str, ...]  # those the step reads, in the model's order; the model may have others too
    texts: Mapping[str, Generation] = field(default_factory=dict)  # what the step wrote, by example id
    place: int = 0  # among the steps of its run: a step has one colour in every plot (mmgen.plotting)
    generate: Callable[[Any, Sequence[Example]], list[list[Generation]]] = _no_texts  # (model, examples) -> texts


@dataclass(frozen=True)
class ProbeInput:
    """What a probe looks into: trained steps, and examples."""

    steps: Sequence[TrainedStep]
    examples: Sequence[ResolvedExample]
    untaught: Any  # () -> a Model of the same shape that has learnt nothing
    pictures: Mapping[str, Picture] = field(default_factory=dict)  # raw images by key, where the data set has them
    progress: Progress = field(default_factory=Progress)


@dataclass(frozen=True)
class ProbeResult:
    """What people are shown of a probe's results, in the terminal and in a report; JSON throughout.

    tables  title -> rows of cells (texts, numbers, None for what cannot be had), the first row the header
    plots   title -> name of an SVG file in the probe's folder
    notes   how numbers were made, and what could not be had and why, a line each
    """

    tables: Mapping[str, Sequence[Sequence[str | float | None]]] = field(default_factory=dict)
    plots: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Probe(abc.ABC):
    """Looks into trained models."""

    @abc.abstractmethod
    def run(self, subject: ProbeInput, out: Path) -> ProbeResult:
        """Writes files into the folder `out`, which is there and empty. Raises UnavailableError or DataError, in one
        line, when nothing can be had of any step; what a step cannot give is a note. Leaves models as they were."""


class Renderer(abc.ABC):
    """Shows an example and a prediction to people. The example has one of each input's alternatives, and no labels
    where nobody knows them. The prediction is a `tensors.Prediction` of a kind that the config `renders`, or for "text"
    a `tensors.Generation`.

    An exception is reported with the renderer's name, and the prediction is then shown as JSON."""

    @abc.abstractmethod
    def card(self, example: ResolvedExample, prediction: Any) -> Card:
        """What the page shows: see `mmgen.cards.Card`."""

    @abc.abstractmethod
    def line(self, example: ResolvedExample, prediction: Any) -> str:
        """The prediction in some 40 characters, for the terminal."""
