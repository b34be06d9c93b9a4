"""The extension points: one hook per kind, each returning config classes. This file is the complete list.

A plugin is an importable module named in the entry-point group `mmgen`:

    [project.entry-points.mmgen]
    audio = "mmgen_audio"

and implements any of these hooks with `@mmgen.hookimpl`. A hook takes no arguments and must not import torch. The
return annotation of a hook names the base class of its configs; the registry reads the kinds from here.
"""

from collections.abc import Iterable

import pluggy

from . import configs

GROUP = "mmgen"
hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


@hookspec
def register_embedders() -> Iterable[type[configs.EmbedderConfig]]:
    """Config classes of embedders (`mmgen.EmbedderConfig`): they encode one input for a backbone."""
    return ()


@hookspec
def register_extractors() -> Iterable[type[configs.ExtractorConfig]]:
    """Config classes of extractors (`mmgen.ExtractorConfig`): they fill feature stores."""
    return ()


@hookspec
def register_backbones() -> Iterable[type[configs.BackboneConfig]]:
    """Config classes of backbones (`mmgen.BackboneConfig`): pretrained encoders."""
    return ()


@hookspec
def register_generators() -> Iterable[type[configs.GeneratorConfig]]:
    """Config classes of generators (`mmgen.GeneratorConfig`): objectives that can also write."""
    return ()


@hookspec
def register_objectives() -> Iterable[type[configs.ObjectiveConfig]]:
    """Config classes of objectives (`mmgen.ObjectiveConfig`): training tasks besides writing texts."""
    return ()


@hookspec
def register_datasets() -> Iterable[type[configs.DatasetConfig]]:
    """Config classes of data sets (`mmgen.DatasetConfig`)."""
    return ()


@hookspec
def register_metrics() -> Iterable[type[configs.MetricConfig]]:
    """Config classes of metrics (`mmgen.MetricConfig`)."""
    return ()


@hookspec
def register_probes() -> Iterable[type[configs.ProbeConfig]]:
    """Config classes of probes (`mmgen.ProbeConfig`)."""
    return ()


@hookspec
def register_renderers() -> Iterable[type[configs.RendererConfig]]:
    """Config classes of renderers (`mmgen.RendererConfig`): they show a prediction as a card or a line."""
    return ()


@hookspec
def register_callbacks() -> Iterable[type[configs.CallbackConfig]]:
    """Config classes of callbacks (`mmgen.CallbackConfig`): they watch runs while they train."""
    return ()


@hookspec
def register_commands() -> Iterable[type[configs.CommandConfig]]:
    """Config classes of commands (`mmgen.CommandConfig`): `mmgen NAME`."""
    return ()
