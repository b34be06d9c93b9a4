"""mmgen: pretrained encoders as generators. The front door; importing it does not import torch."""

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

__version__ = "0.2.0.dev0"
API_VERSION = 3  # of the plugin contract; docs/plugins.md says what may change within one

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
    "hookimpl",
]
