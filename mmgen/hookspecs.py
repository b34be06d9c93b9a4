"""The extension points: one hook a kind, each returning config classes. This file is the whole list.

A plugin is an importable module named in the entry-point group `mmgen`:

    [project.entry-points.mmgen]
    audio = "mmgen_audio"

and implements any of these hooks with `@mmgen.hookimpl`. A hook takes no arguments and must not import torch.
"""

import pluggy

GROUP = "mmgen"
hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


@hookspec
def register_embedders():
    """Config classes of embedders (`mmgen.EmbedderConfig`): one input of an example, as states for a backbone."""


@hookspec
def register_extractors():
    """Config classes of extractors (`mmgen.ExtractorConfig`): what fills feature stores."""


@hookspec
def register_backbones():
    """Config classes of backbones (`mmgen.BackboneConfig`): pretrained encoders."""


@hookspec
def register_generators():
    """Config classes of generators (`mmgen.GeneratorConfig`): objectives that can also write."""


@hookspec
def register_datasets():
    """Config classes of data sets (`mmgen.DatasetConfig`)."""


@hookspec
def register_metrics():
    """Config classes of metrics (`mmgen.MetricConfig`)."""


@hookspec
def register_probes():
    """Config classes of probes (`mmgen.ProbeConfig`)."""
