"""The extension points: one hook per kind of part. `KINDS` is the complete list.

A plugin is an importable module named in the entry-point group `mmgen`:

    [project.entry-points.mmgen]
    audio = "mmgen_audio"

and implements any of the hooks of `KINDS` with `@mmgen.hookimpl`. A hook takes no arguments, returns config classes of
its kind, and must not import torch:

    @mmgen.hookimpl
    def register_embedders():
        return [Audio]
"""

from collections.abc import Mapping
from types import MappingProxyType

import pluggy

from . import configs

GROUP = "mmgen"
hookimpl = pluggy.HookimplMarker(GROUP)

KINDS: Mapping[str, tuple[str, type[configs.PartConfig]]] = MappingProxyType(
    {
        config.kind: (f"register_{config.kind}s", config)
        for config in (
            configs.EmbedderConfig,  # they encode one input for a backbone
            configs.ExtractorConfig,  # they fill feature stores
            configs.BackboneConfig,  # pretrained encoders
            configs.GeneratorConfig,  # objectives that can also write
            configs.ObjectiveConfig,  # training tasks besides writing texts
            configs.DatasetConfig,
            configs.MetricConfig,
            configs.ProbeConfig,  # they inspect trained steps
            configs.RendererConfig,  # they show a prediction as a card or a line
            configs.CallbackConfig,  # they watch runs while they train
            configs.CommandConfig,  # `mmgen NAME`
        )
    }
)
"""Kind -> (hook that registers it, base class of its configs)."""
