"""An author of plugins: a package of every kind, the parts that the pages show, and a package to publish."""

from mmgen.scaffold import KINDS

from .steps import File, Job, Shell, block_with

PLUGINS, EXAMPLES = "docs/plugins.md", "docs/examples.md"
NAMES = {
    "extractor": "colours",
    "backbone": "tower",
    "generator": "scribe",
    "objective": "length",
    "dataset": "diary",
    "metric": "shared-words",
    "probe": "peek",
    "renderer": "poster",
    "callback": "bell",
    "command": "count",
}
OTHERS = tuple(name for kind, name in NAMES.items() if kind in KINDS)
FAMILY = f'''"""EuroBERT."""

from typing import ClassVar, Literal

import mmgen
import mmgen_encoders

{block_with(PLUGINS, "class EuroBert(mmgen_encoders.Encoder):")}

@mmgen.hookimpl
def register_backbones():
    return [EuroBert]
'''
FAMILY_TEST = '''"""The family passes mmgen's conformance suite, and equals its source."""

import mmgen.testing
from mmgen_eurobert import EuroBert


class TestEuroBert(mmgen.testing.BackboneSuite):
    def config(self):
        return EuroBert(num_hidden_layers=2, hidden_size=32, num_attention_heads=2, vocab_size=100)

    def source_logits(self, backbone, ids):
        return backbone.model(input_ids=ids).logits
'''
FAMILY_PROJECT = block_with(PLUGINS, "# pyproject.toml").replace("numbers", "eurobert")
SMALL = ("data.train_size=32", "data.val_size=4", "data.test_size=4", "training.epochs=1")

JOBS = (
    Job(
        "an embedder in ten minutes",
        (
            Shell("mmgen plugin new audio --kind embedder", PLUGINS),
            Shell("cd mmgen-audio && pip install -q -e . && pytest", PLUGINS),
            Shell("mmgen plugins", PLUGINS),
            Shell("mmgen run recipe.toml", PLUGINS, {"recipe.toml": "mmgen-audio/recipe.toml"}),
        ),
        small=SMALL,
    ),
    Job(
        "a package of every other kind, and its tests",
        (
            *(
                Shell("mmgen plugin new NAME --kind KIND", EXAMPLES, {"NAME": name, "KIND": kind})
                for kind, name in NAMES.items()
            ),
            Shell("pip install -q " + " ".join(f"-e ./mmgen-{name}" for name in OTHERS)),
            Shell("pytest " + " ".join(f"mmgen-{name}/tests" for name in OTHERS)),
            Shell("mmgen plugins --strict-plugins", PLUGINS),
            *(Shell(f"mmgen run mmgen-{name}/recipe.toml") for name in ("length", "shared-words", "poster")),
        ),
        small=SMALL,
        detours=(
            "there was no template of an extractor, and no page had the code of one",
            "the README of a new package did not say that an offline installation needs setuptools 77",
        ),
    ),
    Job(
        "the complete example of the page",
        (
            *(
                File(path, PLUGINS, folder="numbers")
                for path in (
                    "pyproject.toml",
                    "mmgen_numbers/__init__.py",
                    "mmgen_numbers/embedder.py",
                    "tests/test_numbers.py",
                )
            ),
            Shell("cd numbers && pip install -q -e . && pytest"),
        ),
    ),
    Job(
        "an encoder family",
        (
            File("eurobert/pyproject.toml", content=FAMILY_PROJECT),
            File("eurobert/mmgen_eurobert/__init__.py", content=FAMILY),
            File("eurobert/tests/test_eurobert.py", content=FAMILY_TEST),
            Shell("cd eurobert && pip install -q -e . && pytest"),
            Shell("mmgen plugins eurobert"),
        ),
    ),
    Job(
        "a package to publish",
        (
            Shell("cd mmgen-audio && pip wheel . --no-deps -w dist", PLUGINS),
            Shell(
                "pip uninstall -q -y mmgen-audio && pip install -q mmgen-audio/dist/mmgen_audio-0.1.0-py3-none-any.whl"
            ),
            Shell("mmgen plugins --strict-plugins", PLUGINS),
        ),
        needs=("an embedder in ten minutes",),
        detours=("no page said how to build, try and publish a package",),
    ),
)
