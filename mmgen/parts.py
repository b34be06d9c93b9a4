"""Contracts of the parts that plugins provide, except objectives (`mmgen.objectives`). Shape letters are those of
`mmgen.tensors`. Embedders and backbones are plain `torch.nn.Module`s; nothing here needs the framework."""

from __future__ import annotations

import abc
import random
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Literal, cast

import torch
from torch import Tensor, nn

from .cards import Card
from .errors import DataError, UnavailableError
from .examples import Example, Generation, ResolvedExample, Scores
from .progress import Progress
from .tensors import Encoded, Hiding, Segment, Slots
from .tokens import TextEncoder

if TYPE_CHECKING:
    import numpy as np

    from .attention import Cache
    from .features.classes import Classes


class Part(nn.Module):
    """Base class of embedders, backbones and objectives."""

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """This part's tensors in published weights: name of its parameter -> tensor. By default none. A tensor that is
        looked up (`weights[name]`) counts as taken; the names of all others are listed."""
        return {}


def has_all(weights: Container[str], names: Sequence[str], what: str) -> bool:
    """Whether published weights have these tensors of a part, all or none of them. Raises DataError for a part that is
    half there: a new one would lose the half that somebody trained."""
    absent = [name for name in names if name not in weights]
    if absent and len(absent) < len(names):
        present = next(name for name in names if name in weights)
        raise DataError(
            f"{what} is only half there: '{absent[0]}' is missing, but '{present}' is not; use complete weights, or "
            "remove the rest of it from the file to start a new one"
        )
    return not absent


class Reader(abc.ABC):
    """The part of an embedder that runs in loader workers: it has no parameters and is picklable. `hides`: what `hide`
    masks; None if it masks nothing. The config has the same attribute."""

    hides: ClassVar[Literal["words", "regions"] | None] = None

    @abc.abstractmethod
    def read(self, example: ResolvedExample) -> Any:
        """The input of one example (arrays, token ids), the same every time. Raises DataError for a field that the
        example lacks, DataError for a value that cannot be read."""

    @abc.abstractmethod
    def collate(self, items: Sequence[Any]) -> dict[str, Tensor]:
        """B items of `read` as padded tensors, the keyword arguments of `Embedder.forward`."""

    def hide(self, item: Any, draw: random.Random, hiding: Hiding) -> tuple[Any, Tensor]:
        """A copy of an item of `read` with parts masked, and the labels of what was masked: (N,) or (N, C), -100 at
        slots that are not to be predicted."""
        raise NotImplementedError

    def slots(self, value: Any) -> float:
        """About how many slots one value of the input takes (a key, a text), without reading features: similar examples
        share batches. It is called for every value of the training data; see `mmgen.tokens.estimate_tokens`."""
        return 0

    def augment(self, example: ResolvedExample, name: str, draw: random.Random) -> ResolvedExample:
        """What a visit to a training example reads in its place: a mirrored picture, with its texts. `name`: of the
        input, for `ResolvedExample.overrides`. Lengths and numbers of targets must stay about the same. By default the
        example."""
        return example


class Embedder(Part, abc.ABC):
    """One input of an example as states of width `backbone.input_size`. Its parameters are those of its modality.
    An embedder that needs the backbone (its word embeddings) keeps it in a list, `self._backbone = [backbone]`: as an
    attribute the backbone would be a submodule, saved twice and trained with the input."""

    reader: Reader

    def prepare(self, pictures: Mapping[str, Picture]) -> None:
        """Called once after `build` if the config `takes` pictures. `pictures`: the raw images of the data by key,
        which are looked for at the first use; raises DataError then if the data have none. By default it does
        nothing."""
        return

    @abc.abstractmethod
    def forward(self, *args: Any, **collated: Any) -> Segment:
        """The collated input of B examples as a `Segment`: states (B, N, E), mask (B, N), optionally types and
        positions. A row's states must not depend on padding or on the other rows."""

    def add(self, slots: Slots, collated: Mapping[str, Tensor] | None, name: str) -> Tensor | None:
        """A term (B, L, E) that is added to the states of whole rows, also at slots of other inputs; by default none.
        `collated` is None if the rows lack this input. `slots.of(name)` marks the slots of this input, and
        `slots.index` says which of its N slots each is."""

    def tail_term(self, slots: Slots, collated: Mapping[str, Tensor] | None) -> Tensor | None:
        """A term (B, E) that is added to the states of everything written behind the rows; by default none."""

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
    types: int = 2  # number of token types; 0: it has none and ignores `Slots.types`
    extra_positions: int = 0  # additional rows of its position table: `Slots.positions` -1, -2, ...
    masks: ClassVar[Literal["any", "causal"]] = "any"  # obeys any attention mask, or reads slots from left to right
    caches: bool  # whether `encode` fills and uses the cache that `new_cache` makes
    tokenizer: Any  # of transformers, or one that is called and decodes like it, and has `all_special_ids`
    start_id: int  # [CLS], <s>
    end_id: int  # [SEP], </s>: parts the inputs and ends a text, the paper's [EOS]
    mask_id: int
    pad_id: int

    @abc.abstractmethod
    def embed(self, ids: Tensor) -> Tensor:
        """Word embeddings alone, without position, type and normalisation: (B, L) -> (B, L, E)."""

    @abc.abstractmethod
    def encode(self, slots: Slots, cache: Cache | None = None, output: Sequence[str] = ()) -> Encoded:
        """Rows through the encoder. With a cache, `slots` follow the cached ones, see them as
        `mmgen.attention.visible` says, and are cached too. `output` may name "hidden" and "attentions"."""

    def states_at(self, slots: Slots, mask: Tensor, cache: Cache | None = None) -> Tensor:
        """Last states (n, H) of the slots that `mask` (B, L) marks, row by row. The last layer may skip the other
        slots, except for their keys and values in the cache."""
        return self.encode(slots, cache).last[mask]

    @abc.abstractmethod
    def logits(self, states: Tensor) -> Tensor:
        """The masked-language-model head: (..., H) -> (..., V)."""

    def add_pooler(self) -> None:
        """Adds what `pooled` needs: a dense layer, trained with the backbone. Called once, if an objective pools. By
        default its weights are drawn (normal, deviation 0.02)."""
        dense = nn.Linear(self.hidden_size, self.hidden_size)
        nn.init.normal_(dense.weight, std=0.02)
        nn.init.zeros_(dense.bias)
        self.pooler = nn.Sequential(OrderedDict(dense=dense, activation=nn.Tanh()))

    def pooled(self, states: Tensor) -> Tensor:
        """BERT's pooled states (B, H) of the first slots of rows (B, L, H). Only after `add_pooler`."""
        return cast(Tensor, self.pooler(states[:, 0]))

    def set_gradient_checkpointing(self, enabled: bool) -> None:
        """Recompute the layers' activations in the backward pass of training, or keep them. Only enabled where the
        config has `supports_gradient_checkpointing`."""
        if enabled:
            raise NotImplementedError

    def new_cache(self) -> Cache:
        """An empty cache; only for backbones with `caches`."""
        raise NotImplementedError

    @abc.abstractmethod
    def save(self, folder: Path) -> None:
        """Everything but the weights (sizes, tokenizer), so that `BackboneConfig.build(folder=folder)` finds it."""

    def library_weights(self) -> Mapping[str, Tensor]:
        """The weights for the library that the encoder comes from, by the library's names: an export writes them beside
        the files of `save`, so that the library can load that folder. Empty if there is no such library."""
        return {}

    @cached_property
    def text_encoder(self) -> TextEncoder:
        """Encodes people's texts; readers keep it, since it is picklable."""
        return TextEncoder(self.tokenizer)

    @cached_property
    def forbidden_ids(self) -> tuple[int, ...]:
        """Ids that no way of writing may choose: all special tokens but the end token. They are left out of texts, so
        that texts would have holes, and different ones would look the same."""
        special = self.text_encoder.special_ids | {self.start_id, self.mask_id, self.pad_id}
        return tuple(sorted(special - {self.end_id}))

    def encode_text(self, text: str) -> list[int]:
        """Token ids of a text, without special tokens: those in the text are ordinary characters."""
        return self.text_encoder([text])[0]

    def decode_text(self, ids: Iterable[int]) -> str:
        """The text of token ids, special tokens left out."""
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=True)
        return text.strip()


@dataclass(frozen=True)
class Picture:
    """A raw image for a feature store. Only `load` opens its file; it is called in any thread, one at a time."""

    key: str
    load: Any  # () -> PIL.Image.Image; `features.images.load_image` gives it as RGB
    boxes: Sequence[Sequence[float]] | None = None  # R x (x0, y0, x1, y1) relative to the image, where known
    region_names: Sequence[str] | None = None  # R texts, if known
    classes: Classes | None = None  # of the R boxes, where known


@dataclass(frozen=True)
class File:
    """A file that a query gives to an input whose config `takes` files.

    name     for errors; it may be a client's, and is not to be opened
    content  its bytes, or its path
    """

    name: str
    content: bytes | Path = field(repr=False)

    def open(self) -> BinaryIO:
        """The opened file. Raises OSError."""
        return BytesIO(self.content) if isinstance(self.content, bytes) else self.content.open("rb")


@dataclass(frozen=True)
class Record:
    """The features of one image."""

    key: str
    features: np.ndarray  # (R, D) float
    boxes: np.ndarray | None = None  # (R, 4) float32 (x0, y0, x1, y1), relative to the image's size
    region_names: tuple[str, ...] | None = None  # R texts
    scores: np.ndarray | None = None  # (R,) float32, the detector's confidence
    classes: Classes | None = None  # the surest classes of each region, with probabilities
    place: str = ""  # where it was read, "regions.tsv:12", for messages; not stored


@dataclass(frozen=True)
class FailedImage:
    """An image whose features could not be made. It is listed, and the others are extracted."""

    key: str
    reason: str


class Extractor(abc.ABC):
    """Makes records for a feature store: detectors, CNN grids, importers of published files. `fingerprint`: what made
    the features (name, hash of the weights, settings); two stores with equal ones can be mixed."""

    fingerprint: Mapping[str, Any]
    thread_safe: bool = False  # whether several threads may call `records` at a time

    @abc.abstractmethod
    def records(
        self, source: Iterable[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> Iterator[Record | FailedImage]:
        """One record per image, except for the keys in `skip` (already in the store). Uses constant memory."""

    def count(self, source: Iterable[Picture] | Path) -> int | None:
        """The number of images, or None if it is not known; for progress bars only."""
        return len(source) if isinstance(source, Sized) else None

    def save(self, folder: Path) -> None:
        """Write the network into an existing, empty folder, so that `ExtractorConfig.load` needs nothing else. An
        extractor that a model's export should contain overrides both methods."""
        advice = "leave it out with --without-extractor, in Python extractor=False"
        raise UnavailableError(f"{type(self).__name__} cannot be saved with a model; {advice}")


class Dataset(abc.ABC):
    """Examples in named splits: the same every time, ids unique over all splits."""

    @abc.abstractmethod
    def splits(self) -> tuple[str, ...]:
        """The names of the splits."""

    @abc.abstractmethod
    def split(self, name: str) -> Sequence[Example]:
        """The examples of a split, which may be made when they are indexed: a run walks through all of them before the
        first update, and then makes those of each batch. Raises DataError for an unknown name."""

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        """What objectives may choose from, by the name of a label: the 3,129 answers of VQA. A run saves it."""
        return {}

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """ "name", "examples" (counts), "licence", "source", and "published", the paper's rows, if it is a paper's data
        set; JSON."""

    def pictures(self) -> Iterable[Picture]:
        """Raw images of all splits, each key once, for extracting features and for reports."""
        raise DataError("this data set has no raw images; give the embedder a file of features")


class Metric(abc.ABC):
    """Scores texts, or the other kinds of predictions that its config `judges`."""

    def prepare(self, pictures: Callable[[Sequence[Example]], Mapping[str, Picture]], device: torch.device) -> None:
        """Called once after `build`, if the config says `needs_pictures` or `needs_device`. `pictures`: the raw images
        among the inputs of examples, by key; it raises DataError if the data have none. `device`: where the run's
        model is, for a metric with a model."""
        return

    @abc.abstractmethod
    def score(self, generations: Sequence[Any], examples: Sequence[Example]) -> Scores:
        """One `examples.Generation` an example, in the same order; references are the examples' targets. A metric of
        other kinds gets `examples.Prediction`s; both have a `value`."""

    def references(self, examples: Sequence[Example]) -> Scores | None:
        """The scores of the references themselves, for the row "people" of the table; scores named "chance_<name>" go
        into the row "chance". By default None: no row "people"; chance is what references of other pictures score."""
        return None


def _no_texts(model: Any, examples: Sequence[Example]) -> list[list[Generation]]:
    raise UnavailableError("this step does not generate texts")


@dataclass(frozen=True)
class TrainedStep:
    """A trained step of a run, for probes. `load` reads its weights: hold one model at a time."""

    name: str
    load: Any  # () -> mmgen.model.Model in eval mode, on the device to use
    inputs: tuple[str, ...]  # those the step reads, in the model's order; the model may have others too
    texts: Mapping[str, Generation] = field(default_factory=dict)  # what the step wrote, by example id
    place: int = 0  # among the steps of its run: a step has one colour in every plot (mmgen.plotting)
    generate: Callable[[Any, Sequence[Example]], list[list[Generation]]] = _no_texts  # (model, examples) -> texts


@dataclass(frozen=True)
class ProbeInput:
    """Input of a probe: trained steps, and examples."""

    steps: Sequence[TrainedStep]
    examples: Sequence[ResolvedExample]
    untaught: Any  # () -> an untrained Model of the same shape
    pictures: Mapping[str, Picture] = field(default_factory=dict)  # raw images by key, where the data set has them
    progress: Progress = field(default_factory=Progress)


@dataclass(frozen=True)
class ProbeResult:
    """Results of a probe for the terminal and the report; JSON throughout.

    tables  title -> rows of cells (texts, numbers, None if missing), the first row the header
    plots   title -> name of an SVG file in the probe's folder
    notes   lines: how numbers were made, and what is missing and why
    """

    tables: Mapping[str, Sequence[Sequence[str | float | None]]] = field(default_factory=dict)
    plots: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Probe(abc.ABC):
    """Inspects trained models."""

    @abc.abstractmethod
    def run(self, subject: ProbeInput, out: Path) -> ProbeResult:
        """Writes files into the empty folder `out`. Raises UnavailableError or DataError, in one line, if no step can
        provide anything; a note reports what one step cannot provide. It must not change models."""


@dataclass(frozen=True)
class RunInfo:
    """A run that begins or resumes. `recipe`: its resolved recipe, JSON. `steps`: the steps that are to do."""

    name: str
    profile: str
    seed: int
    folder: Path
    recipe: Mapping[str, Any]
    steps: tuple[str, ...]


class Callback:
    """Watches a run. A method that is not overridden does nothing. Training waits for a method to return. Records are
    copies. An exception is reported, and the callback is left out from then on. docs/extend/contracts.md lists the
    keys of a record."""

    def on_run_begin(self, run: RunInfo) -> None:
        """Before the first step that is to do."""

    def on_step_begin(self, step: str, done: int, updates: int) -> None:
        """A step trains; `done` of its `updates` are behind it, more than 0 if it resumes."""

    def on_update(self, step: str, record: Mapping[str, Any]) -> None:
        """An update is done. `record`: its line of `log.jsonl`, without the keys that the end of an epoch adds."""

    def on_epoch_end(self, step: str, record: Mapping[str, Any]) -> None:
        """An epoch has ended. `record`: the whole line of its last update."""

    def on_validation(self, step: str, record: Mapping[str, Any]) -> None:
        """Validation examples were measured. `record`: "update" and the keys that begin with "validation_"."""

    def on_step_end(self, step: str, scores: Mapping[str, float | None]) -> None:
        """A step is trained and scored; no scores if it is not evaluated."""

    def on_run_end(self, tables: Sequence[str]) -> None:
        """All steps are done. `tables`: the tables of the run, as Markdown."""

    def close(self) -> None:
        """The run has ended in any way."""


class Renderer(abc.ABC):
    """Shows an example and a prediction to people. The example has one of each input's alternatives, and may have no
    labels. The prediction is a `examples.Prediction` of a kind that the config `renders`, or for "text" a
    `examples.Generation`.

    An exception is reported in one line; samples or page are missing then, and the run goes on."""

    @abc.abstractmethod
    def card(self, example: ResolvedExample, prediction: Any) -> Card:
        """What the page shows: see `mmgen.cards.Card`."""

    @abc.abstractmethod
    def line(self, example: ResolvedExample, prediction: Any) -> str:
        """The prediction in some 40 characters, for the terminal."""
