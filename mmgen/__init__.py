"""mmgen: pretrained encoders as generators. The front door; importing it does not import torch."""

from typing import TYPE_CHECKING, Any

from .configs import (
    BackboneConfig,
    CallbackConfig,
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
    from .inference.load import load
    from .inference.load import load as from_pretrained

__version__ = "0.2.0.dev0"
API_VERSION = 4  # of the plugin contract; docs/plugins.md says what may change within one


def __getattr__(name: str) -> Any:
    """`load`, also called `from_pretrained`: imported when it is used, since it needs torch."""
    if name in ("load", "from_pretrained"):
        from .inference.load import load

        return load
    raise AttributeError(f"module 'mmgen' has no attribute '{name}'")


__all__ = [
    "API_VERSION",
    "BackboneConfig",
    "CallbackConfig",
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
