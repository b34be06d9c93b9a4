"""mmgen: pretrained encoders as generators. The front door; importing it does not import torch."""

from .configs import (
    BackboneConfig,
    Config,
    DatasetConfig,
    Decoding,
    EmbedderConfig,
    ExtractorConfig,
    FeaturesConfig,
    GeneratorConfig,
    MetricConfig,
    ProbeConfig,
)
from .errors import DataError, MmgenError, PluginError, RecipeError, RunError, UnavailableError
from .hookspecs import hookimpl

__version__ = "0.1.0"
API_VERSION = 1
