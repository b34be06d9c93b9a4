"""mmgen: pretrained encoders as generators. The front door; importing it does not import torch."""

import importlib
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
from .examples import All, Example
from .hookspecs import hookimpl
from .settings import Config

if TYPE_CHECKING:
    from .evaluation.answers import generate
    from .inference.load import load
    from .model import compose
    from .training.fit import fit

__version__ = "0.2.0.dev0"
API_VERSION = 4  # of the plugin contract; docs/extend/contracts.md says what may change within one


LAZY = {"compose": "model", "fit": "training.fit", "generate": "evaluation.answers", "load": "inference.load"}


def __getattr__(name: str) -> Any:
    """What needs torch is imported when it is used."""
    if name in LAZY:
        return getattr(importlib.import_module(f".{LAZY[name]}", __name__), name)
    raise AttributeError(f"module 'mmgen' has no attribute '{name}'")


__all__ = [
    "API_VERSION",
    "All",
    "BackboneConfig",
    "CallbackConfig",
    "CommandConfig",
    "Config",
    "DataError",
    "DatasetConfig",
    "Decoding",
    "DecodingConfig",
    "EmbedderConfig",
    "Example",
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
    "compose",
    "fit",
    "generate",
    "hookimpl",
    "load",
]
