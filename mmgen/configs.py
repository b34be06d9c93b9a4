"""Configs: for each kind of part, a frozen pydantic class that is its table in TOML, its documentation and its builder.

A part's config subclasses the class of its kind below, sets `type` to its name, and builds the part. Importing a config
must not import torch, so `build` imports the part's module when it is called:

    class Regions(mmgen.EmbedderConfig):
        type: Literal["regions"] = "regions"
        max_regions: int = Field(36, ge=1)

        def build(self, backbone):
            from .embedder import RegionEmbedder
            return RegionEmbedder(self, backbone.input_size)

The types in the signatures, such as `parts.Backbone`, are the contracts of `mmgen.parts` and `mmgen.objectives`."""

import re
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, GetCoreSchemaHandler, SerializeAsAny, ValidationInfo
from pydantic_core import core_schema

from .decoding import Decoding, DecodingConfig
from .settings import Config

SOURCE_KEYS = ("share", "inputs", "objectives")  # of a data set that a step trains on, not of its examples
PROMPT = "prompt"  # the label of examples and queries, and of `tensors.Targets` (`mmgen.prompts`)
Mixes = Literal["visible", "row", "nothing"]  # what may change the state of a slot of a backbone
Gives = str  # kind of predictions: "text", "label", "choice", "region", "boxes", or a plugin's own
LIKELIHOOD: Gives = "likelihoods"  # of references: what metrics may judge in place of texts (`MetricConfig.judges`)

if TYPE_CHECKING:
    import click
    import numpy as np

    from . import objectives, parts
    from .examples import Example
    from .reading.results import ResultFiles


class SequenceConfig(Config):
    """The layout of the input sequence."""

    open: bool = Field(True, description="begin the inputs with [CLS]")
    close: bool = Field(False, description="end the inputs with [SEP]; the paper has none")
    target_token_type: int = Field(0, ge=0, description="token type of generated tokens")


class RelativeTo:
    """Marks a key whose paths are relative to another key of its config instead of the recipe: `files:
    Annotated[tuple[Path, ...], RelativeTo("folder")]`."""

    def __init__(self, key: str) -> None:
        self.key = key


class PathOrName:
    """Marks a string that is a path if such a file or folder exists, and otherwise a name (of a hub model):
    `weights: Annotated[str, PathOrName()]`. `behind`: prefixes, after which the path or name begins; a string
    without one of them is neither."""

    def __init__(self, *behind: str) -> None:
        self.behind = behind


@dataclass(frozen=True)
class Download:
    """A published set (of `PartConfig.sources`), the folder of its files, and that of its pictures inside of it, None
    without pictures. A folder "images-1500" gets 1,500 pictures, the same for everybody."""

    name: str
    folder: Path
    images: Path | None = None
    complete: bool = False  # on this machine

    @property
    def limit(self) -> int | None:
        """The number of pictures; None for all."""
        number = re.fullmatch(r"images-(\d+)", self.images.name if self.images else "")
        return int(number[1]) if number else None

    @property
    def command(self) -> str:
        """The command that fetches it."""
        pictures = f" --limit {self.limit}" if self.limit else " --images" * bool(self.images)
        return f"mmgen data get {self.name} {self.folder}{pictures}"


class PartConfig(Config):
    """The config of a part that plugins provide. `type` is its name in recipes."""

    kind: ClassVar[str]
    in_recipes: ClassVar[bool] = True  # whether a recipe can name parts of this kind
    place: ClassVar[str] = ""  # where parts of this kind are named, if not in a table of a recipe
    usage: ClassVar[str] = ""  # how to use a part of this kind without keys; {name} is its name
    sources: ClassVar[Path | None] = None  # a TOML file of published sets, which `mmgen data get` fetches
    type: str

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """A field for any part of a kind: in a recipe, whose context is a `recipe.parse.Parts`, the table becomes the
        config of the part that its `type` names, with all mistakes of that table."""
        schema = handler(source)
        if not cls.model_fields["type"].is_required():  # one part
            return schema

        def read(value: Any, validate: Callable[[Any], Any], info: ValidationInfo) -> Any:
            return info.context.part(cls, value) if info.context and isinstance(value, dict) else validate(value)

        inner: Any = {key: value for key, value in schema.items() if key != "ref"}  # pydantic looks classes up by `ref`
        return core_schema.with_info_wrap_validator_function(read, inner, ref=schema["ref"])

    def missing_here(self) -> Mapping[str, str]:
        """What it needs and this machine lacks: the key that names it -> what is wrong ("" for nothing), and where to
        get it, with its size if known. `mmgen run` lists it with all else that is missing before it builds anything. A
        data set raises DataError when it is built instead, and files of features are looked at for all inputs."""
        return {}

    def download(self) -> "Download | None":
        """The published set that it reads, if any: `mmgen run` offers to fetch what is missing of it."""
        return None


class EmbedderConfig(PartConfig):
    """Turns one input (an image's regions, a caption) into states that a backbone can read.

    takes  what a query gives for it, and its reader gets beside the values of examples: a `parts.Picture` (see
           `parts.Embedder.prepare`), a `parts.File`, or a text. Only an input that says so is served, since nothing
           that a client sends may become a path
    """

    kind: ClassVar[str] = "embedder"
    hides: ClassVar[Literal["words", "regions"] | None] = None  # its reader's `hides`

    takes: ClassVar[Literal["picture", "file", "text"] | None] = None  # "text" for one that overrides `texts`

    fields: tuple[str, ...] = Field(
        (), description="fields of an example that it reads; by default the field of its name"
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        if cls.takes is None and cls.texts is not EmbedderConfig.texts:
            cls.takes = "text"

    def build(self, backbone: "parts.Backbone") -> "parts.Embedder":
        raise NotImplementedError

    def backbone_problem(self, backbone: "BackboneConfig") -> str:
        """Why it cannot be read by this backbone, and what to do; empty if it can."""
        return ""

    def named(self, name: str) -> "EmbedderConfig":
        """This config for the input `name`, which by default reads the field of that name."""
        return self if self.fields else self.model_copy(update={"fields": (name,)})

    def texts(self, example: "Example") -> Iterable[str]:
        """Texts of an example for training a vocabulary."""
        return ()

    def optional_fields(self) -> tuple[str, ...]:
        """Further fields, which it reads if an example has them (which words mean which region)."""
        return ()


class ExtractorConfig(PartConfig):
    """Fills a feature store, from raw images or from a published file of features."""

    kind: ClassVar[str] = "extractor"
    source: ClassVar[Literal["pictures", "file"]] = "pictures"  # what `parts.Extractor.records` takes

    def build(self) -> "parts.Extractor":
        raise NotImplementedError

    def is_random(self) -> bool:
        """Whether its features come from random weights, which a run reports. Its fingerprint then has "weights":
        "random"."""
        return False

    def base_model(self) -> str | None:
        """The path or hub name of its network's pretrained weights, which a model card names if it is not a path."""
        return None

    def load(self, folder: Path) -> "parts.Extractor":
        """The extractor with the network in a folder that `parts.Extractor.save` wrote; its fingerprint equals that of
        the saved extractor. Reads nothing outside of the folder. Raises DataError for a damaged folder."""
        raise NotImplementedError


class FeaturesConfig(EmbedderConfig):
    """Base class of embedders with features from a store (`mmgen.features.store`): an extractor's, or published.

    `width`, `fingerprint` and `classes` come from the file, and a run saves them (`parts.Embedder.inferred_settings`),
    so that the embedder can be built without the file."""

    takes = "picture"

    features: Path | None = Field(
        None,
        description="feature store, a folder of HDF5 files, or one of them; without it, "
        "`extractor` computes features from the images of the data set",
    )
    extractor: SerializeAsAny[ExtractorConfig] | None = Field(None, description="computes the features from raw images")
    boxes: bool = Field(
        True, description="append a region's box to its features: four numbers relative to the image's size"
    )
    normalize: Literal["none", "standard"] = Field(
        "none",
        description="none: features unchanged; standard: each dimension scaled to mean 0 and standard deviation 1 over "
        "the store",
    )
    zero_features: bool = Field(
        False,
        description="set all features to 0, so that only the boxes are left: for a control row without visual features",
    )
    allow_other_features: bool = Field(
        False, description="accept features of an extractor other than that of the training features"
    )
    width: int | None = Field(None, ge=1, le=1 << 20, description="width of the features; read from the store")
    fingerprint: dict[str, Any] | None = Field(
        None, description="identifies the extractor of the features; read from the store"
    )
    classes: tuple[str, ...] | None = Field(
        None, description="class names of regions; read from the store, if it has them"
    )


class BackboneConfig(PartConfig):
    """A pretrained encoder with its tokenizer and its masked-language-model head.

    mixes                            what may change the state of a slot: "visible", the slots that it sees
                                     (`mmgen.attention.visible`); "row", any slot of its row, as in a recurrent network
                                     or a bag of words; "nothing", no other slot
    supports_gradient_checkpointing  whether `parts.Backbone.set_gradient_checkpointing` can be enabled
    """

    kind: ClassVar[str] = "backbone"
    mixes: ClassVar[Mixes] = "visible"
    supports_gradient_checkpointing: ClassVar[bool] = False

    def build(self, texts: Iterable[str] | None = None, folder: Path | None = None) -> "parts.Backbone":
        """Build the encoder. `texts`: for training a vocabulary, if the encoder is not pretrained. `folder`: written
        by `Backbone.save`; sizes and tokenizer come from there, and the caller loads the weights."""
        raise NotImplementedError

    def base_model(self) -> str | None:
        """The path or hub name of its pretrained weights, which a model card names if it is not a path."""
        return None


class TrainedConfig(PartConfig):
    """What a step trains: an objective or the generator.

    gives            the kind of prediction that it makes; None if it only trains
    required_labels  names of the labels that examples must have
    query_labels     labels that a query gives, to predict (the choices, and not the right one) or to write (a partly
                     written text)
    makes_rows       whether its reader overrides `objectives.TargetReader.rows`
    pools            whether it reads `parts.Backbone.pooled`
    over_batch       whether its loss compares the rows of a batch: an update then has one micro-batch
    exports_weights  whether another objective, with the key `init_from`, may start from its
                     `Objective.hidden_layer`
    asks_generator   whether it asks the recipe's generator; it may then predict with weights that were trained to write
    """

    gives: ClassVar[Gives | None] = None
    required_labels: ClassVar[tuple[str, ...]] = ()
    query_labels: ClassVar[tuple[str, ...]] = ()
    makes_rows: ClassVar[bool] = False
    pools: ClassVar[bool] = False
    over_batch: ClassVar[bool] = False
    exports_weights: ClassVar[bool] = False
    asks_generator: ClassVar[bool] = False

    def hidden(self, inputs: Mapping[str, EmbedderConfig]) -> tuple[str, ...]:
        """The step's inputs that it masks."""
        return ()

    def provides(self) -> tuple[str, ...]:
        """Fields that its rows have and the examples of the data need not have (the choice that a row is about)."""
        return ()

    def errors(self, inputs: Mapping[str, EmbedderConfig]) -> str:
        """What does not fit a step with these inputs, and what to do; empty if everything fits."""
        return ""


class ObjectiveConfig(TrainedConfig):
    """What a step trains, beside writing or instead of it."""

    kind: ClassVar[str] = "objective"

    weight: float = Field(1.0, gt=0, description="factor of its losses")

    def build(self, backbone: "parts.Backbone", vocabularies: Mapping[str, tuple[str, ...]]) -> "objectives.Objective":
        """Build the objective. `vocabularies`: what there is to choose from, by name; those of the data
        (`parts.Dataset`) and of the inputs (`parts.Embedder`)."""
        raise NotImplementedError


class GeneratorConfig(TrainedConfig):
    """An objective that can also write: how targets are laid out, trained on and generated.

    backbones  the kinds of `BackboneConfig.mixes` that it can be trained and write with
    decoding   the class by which the table [decoding] is checked. By default `Decoding`, with transformers' names, for
               texts that are written from left to right; a generator with another order has a `DecodingConfig` with
               its keys
    """

    kind: ClassVar[str] = "generator"
    gives: ClassVar[Gives | None] = "text"
    backbones: ClassVar[frozenset[Mixes]] = frozenset({"visible"})
    decoding: ClassVar[type[DecodingConfig]] = Decoding

    def build(self, backbone: "parts.Backbone") -> "objectives.Generator":
        raise NotImplementedError

    def backbone_problem(self, backbone: BackboneConfig) -> str:
        """Why it cannot be trained and write with this backbone; empty if it can."""
        if backbone.mixes in self.backbones:
            return ""
        kinds = " or ".join(f'"{kind}"' for kind in sorted(self.backbones))
        return (
            f"the generator '{self.type}' needs a backbone that mixes {kinds}, but '{backbone.type}' mixes "
            f'"{backbone.mixes}"; choose another generator or backbone'
        )

    def refuses(self, decoding: Any) -> dict[str, str]:
        """Options that are set and that this generator does not have: option -> why, and what to do. `mmgen check`
        prints them with file and line. By default none. `decoding`: of the class `decoding`."""
        return {}


class DatasetConfig(PartConfig):
    """Examples in splits. Three keys name the splits for training, validation and evaluation; `share`, `inputs` and
    `objectives` are of a data set in the `data` of a step."""

    kind: ClassVar[str] = "dataset"
    labels: ClassVar[tuple[str, ...]] = ()  # names of the labels that its examples have
    only_about: ClassVar[str] = ""  # "drawn scenes", if a model of these examples knows nothing else; answers say so

    train_split: str = Field("train", description="the split for training")
    validation_split: str = Field("val", description="the split whose loss is measured during training")
    test_split: str = Field("test", description="the split that every step generates for and is scored on")
    share: float = Field(
        1.0, gt=0, description="its share of every update, in ratio to the shares of the step's other data sets"
    )
    inputs: tuple[str, ...] | None = Field(
        None, min_length=1, description="the step's inputs that its examples have; by default all"
    )
    objectives: tuple[str, ...] | None = Field(
        None, min_length=1, description="the step's objectives that train on it; by default all that fit its inputs"
    )

    @classmethod
    def pictures_of(cls, source: str) -> "DatasetConfig | None":
        """The data set whose pictures are those of a source that `mmgen features extract` names, such as the path or
        the URL of an archive. By default None: this class reads no such source."""
        return None

    def build(self) -> "parts.Dataset":
        raise NotImplementedError


class MetricConfig(PartConfig):
    """Scores predictions against examples.

    judges           the kinds of predictions that it scores; "likelihoods": a list of `examples.Likelihood` for each
                     example, of its references. An evaluation then computes them beside the texts
    required_labels  names of the labels that it needs; for data without them the metric is left out
    lower_is_better  columns whose lowest value is the best
    judges_fit       whether its scores say how well a text fits its example: the references of other pictures then
                     score as chance, unless `parts.Metric.references` has scores of its own for that row
    needs_pictures   whether `parts.Metric.prepare` is called with the pictures of the examples
    needs_device     whether it is called with the run's device
    """

    kind: ClassVar[str] = "metric"
    judges: ClassVar[frozenset[Gives]] = frozenset({"text"})
    required_labels: ClassVar[tuple[str, ...]] = ()
    lower_is_better: ClassVar[frozenset[str]] = frozenset()
    judges_fit: ClassVar[bool] = True
    needs_pictures: ClassVar[bool] = False
    needs_device: ClassVar[bool] = False

    @classmethod
    def result_files(cls) -> "ResultFiles | None":
        """The formats of the task's result files: `mmgen score` reads them, `mmgen predict --as` writes them. By
        default none besides mmgen's own."""
        return None

    def of_sums(self, name: str, sums: "np.ndarray") -> "dict[str, np.ndarray]":
        """Column -> its values (...), from sums (..., K) over examples of `Scores.sums[name]`."""
        raise NotImplementedError

    def build(self) -> "parts.Metric":
        raise NotImplementedError


class ProbeConfig(PartConfig):
    """Inspects the steps of a run, and writes tables and pictures."""

    kind: ClassVar[str] = "probe"

    def build(self) -> "parts.Probe":
        raise NotImplementedError


class CallbackConfig(PartConfig):
    """Watches a run: trackers, notices. It changes no result, and no failure of it ends a run."""

    kind: ClassVar[str] = "callback"

    def problem(self) -> str:
        """Why it cannot work on this machine, and what to do; empty if it can. `mmgen check` reports it, and a run goes
        on without the callback."""
        return ""

    def build(self) -> "parts.Callback":
        """The callback; called in its thread."""
        raise NotImplementedError


class RendererConfig(PartConfig):
    """Shows predictions to people: a card on the page and a line in the terminal, for one task.

    renders          the kinds of predictions that it shows
    required_labels  names of labels that the objective must need: what the prediction is about
    datasets         `type`s of the data sets whose examples it knows; by default any

    If several renderers fit a step, one that names data sets wins, then the one that names more labels. Two equal
    renderers are an error once the step is shown.
    """

    kind: ClassVar[str] = "renderer"
    in_recipes: ClassVar[bool] = False
    place: ClassVar[str] = "cards of report.html, lines of `mmgen run`"
    usage: ClassVar[str] = "It shows predictions in report.html and in the terminal; it has no settings."
    renders: ClassVar[frozenset[Gives]] = frozenset()
    required_labels: ClassVar[tuple[str, ...]] = ()
    datasets: ClassVar[tuple[str, ...]] = ()

    def build(self) -> "parts.Renderer":
        raise NotImplementedError


class CommandConfig(PartConfig):
    """A command of `mmgen`. `type` is its name, and the first line of the docstring its summary in `mmgen --help`,
    below the heading `group`. `build` imports the command's module, when the command is called or its help is shown."""

    kind: ClassVar[str] = "command"
    in_recipes: ClassVar[bool] = False
    place: ClassVar[str] = "mmgen NAME"
    usage: ClassVar[str] = "`mmgen {name} --help` shows its options."
    group: ClassVar[str] = "From other packages"

    def build(self) -> "click.Command":
        raise NotImplementedError


def nested_kinds(config: type[Config]) -> dict[str, str]:
    """The fields of a config that contain a part -> kind of the part."""
    fields = [(name, cls) for name, info in config.model_fields.items() for cls in classes_in(info.annotation)]
    return {name: cls.kind for name, cls in fields if isinstance(cls, type) and issubclass(cls, PartConfig)}


def classes_in(annotation: Any) -> list[Any]:
    """The classes in an annotation; for `X | None`, X and None."""
    arguments = typing.get_args(annotation)
    return [inner for argument in arguments for inner in classes_in(argument)] if arguments else [annotation]
