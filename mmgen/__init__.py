"""mmgen: pretrained encoders as generators. The front door; importing it does not import torch."""

from typing import TYPE_CHECKING, Any

from .configs import (
    BackboneConfig,
    CommandConfig,
    DatasetConfig,
    EmbedderConfig,
    ExtractorConfig,
    FeaturesConfig,
    GeneratorConfig,
    MetricConfig,
    ObjectiveConfig,
    ProbeConfig,
    RendererConfig,
)
from .decoding import Decoding, DecodingConfig
from .errors import DataError, MmgenError, PluginError, RecipeError, RunError, UnavailableError
from .hookspecs import hookimpl
from .settings import Config

if TYPE_CHECKING:
    from .inference.predictor import Predictor

__version__ = "0.2.0.dev0"
API_VERSION = 3  # of the plugin contract; docs/plugins.md says what may change within one


def load(where: str, **options: Any) -> "Predictor":
    """Load a model as a predictor: the folder of an export or of a run, or "hf:user/name". `options`: device, dtype,
    step and others; see `mmgen.inference.load.load`."""
    from .inference.load import load

    return load(where, **options)


from_pretrained = load  # the name in other libraries

__all__ = [
    "API_VERSION",
    "BackboneConfig",
    "CommandConfig",
    "Config",
    "DataError",
    "DatasetConfig",
    "Decoding",
    "DecodingConfig",
    "EmbedderConfig",
    "ExtractorConfig",
    "FeaturesConfig",
    "GeneratorConfig",
    "MetricConfig",
    "MmgenError",
    "ObjectiveConfig",
    "PluginError",
    "ProbeConfig",
    "RecipeError",
    "RendererConfig",
    "RunError",
    "UnavailableError",
    "from_pretrained",
    "hookimpl",
    "load",
]
