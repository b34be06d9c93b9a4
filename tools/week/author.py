"""An author of plugins: a package of every kind, the parts that the pages show, and a package to publish."""

import shlex

from mmgen.scaffold import KINDS

from .steps import ROOT, TINY, File, Job, Shell, block_with

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
OBJECTIVE = '''"""The objective of the page."""

from typing import Literal

import mmgen


class PageLength(mmgen.ObjectiveConfig):
    """Predict how many words the first target has."""

    type: Literal["page-length"] = "page-length"

    def build(self, backbone, vocabularies):
        from .objective import LengthObjective

        return LengthObjective(backbone)


@mmgen.hookimpl
def register_objectives():
    return [PageLength]
'''
OBJECTIVE_TEST = """import mmgen.testing
from mmgen_page_length import PageLength


class TestPageLength(mmgen.testing.ObjectiveSuite):
    def config(self):
        return PageLength()
"""
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
        makes=("mmgen-audio",),
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
        ),
        detours=(
            "there was no template of an extractor, and no page had the code of one",
            "the README of a new package did not say that an offline installation needs setuptools 77",
        ),
        makes=tuple(f"mmgen-{name}" for name in NAMES.values()),
    ),
    Job(
        "recipes, a probe and a command of these packages",
        (
            *(
                Shell("mmgen run recipe.toml", PLUGINS, {"recipe.toml": f"mmgen-{name}/recipe.toml"})
                for name in OTHERS
                if name not in ("count", "diary")
            ),
            Shell("mmgen probe RUN", PLUGINS, {"RUN": "runs/peek/default/seed-0"}),
            Shell("mmgen count", PLUGINS, {"count": "count runs/length/default/seed-0"}),
        ),
        small=SMALL,
        needs=("a package of every other kind, and its tests",),
    ),
    Job(
        "a run on one's own data set",
        (Shell("mmgen run recipe.toml", PLUGINS, {"recipe.toml": "mmgen-diary/recipe.toml"}),),
        small=SMALL[-1:],
        needs=("a package of every other kind, and its tests",),
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
            Shell("cd mmgen-audio && pip install -q -e . && pytest", PLUGINS, {"mmgen-audio": "numbers"}),
        ),
    ),
    Job(
        "an encoder family",
        (
            File("eurobert/pyproject.toml", content=FAMILY_PROJECT),
            File("eurobert/mmgen_eurobert/__init__.py", content=FAMILY),
            File("eurobert/tests/test_eurobert.py", content=FAMILY_TEST),
            Shell("cd mmgen-audio && pip install -q -e . && pytest", PLUGINS, {"mmgen-audio": "eurobert"}),
            Shell("mmgen plugins NAME", "docs/data.md", {"NAME": "eurobert"}),
        ),
    ),
    Job(
        "a package to publish",
        (
            Shell("cd mmgen-audio && pip wheel . --no-deps -w dist", PLUGINS),
            Shell(
                "pip install dist/mmgen_audio-0.1.0-py3-none-any.whl",
                PLUGINS,
                {"install dist": "install -q --force-reinstall mmgen-audio/dist"},
            ),
            Shell("mmgen plugins --strict-plugins", PLUGINS),
        ),
        needs=("an embedder in ten minutes",),
        detours=("no page said how to build, try and publish a package",),
    ),
    Job(
        "the objective of the page",
        (
            Shell("mmgen plugin new NAME --kind objective", PLUGINS, {"NAME": "page-length"}),
            File("mmgen-page-length/mmgen_page_length/__init__.py", content=OBJECTIVE),
            File(
                "mmgen-page-length/mmgen_page_length/objective.py",
                content=block_with(PLUGINS, "class LengthObjective(Objective):"),
            ),
            File("mmgen-page-length/tests/test_page_length.py", content=OBJECTIVE_TEST),
            Shell("cd mmgen-audio && pip install -q -e . && pytest", PLUGINS, {"mmgen-audio": "mmgen-page-length"}),
            Shell("mmgen run recipe.toml", PLUGINS, {"recipe.toml": "mmgen-page-length/recipe.toml"}),
        ),
        small=SMALL,
        makes=("mmgen-page-length",),
        detours=("docs/plugins.md said that a new package has the page's objective, but it has another one",),
    ),
    Job(
        "the packages of examples/",
        (
            Shell(f"cp -r {shlex.quote(str(ROOT))}/examples ."),
            Shell(
                "pip install ./examples/mmgen_audio ./examples/mmgen_modernbert", EXAMPLES, {"install": "install -q"}
            ),
            Shell("mmgen plugins", EXAMPLES),
            Shell("pytest", EXAMPLES, {"pytest": "pytest examples/mmgen_audio/tests examples/mmgen_modernbert/tests"}),
            *(
                Shell(command, EXAMPLES, names)
                for name in ("recipe.toml", "rivals.toml")
                for names in ({name: f"examples/mmgen_audio/{name}"},)
                for command in (f"python -m mmgen_audio {name}", f"mmgen run {name}")
            ),
            Shell(
                "mmgen run rivals.toml --profile masked",
                EXAMPLES,
                {"rivals.toml": "examples/mmgen_audio/rivals.toml"},
            ),
            Shell("mmgen compare runs/rivals/causal/seed-0 runs/rivals/masked/seed-0", EXAMPLES),
            Shell("mmgen run recipe.toml", EXAMPLES, {"recipe.toml": "examples/mmgen_modernbert/recipe.toml"}),
        ),
        small=(*TINY, "metrics.overlap.meteor=false", "metrics.overlap.tokenizer=own"),
        needs=("a package to publish",),
    ),
    Job(
        "the tutorial",
        (
            Shell(
                "python -m tools.tutorial --write",
                "CONTRIBUTING.md",
                {"python": f"cd {shlex.quote(str(ROOT))} && python", " --write": ""},
            ),
        ),
    ),
)
