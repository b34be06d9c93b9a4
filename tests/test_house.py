"""What holds for the house as a whole, beside the imports (`lint-imports`): the core names no part, and torch
starts late."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import mmgen
from mmgen.configs import nested_kinds
from mmgen.recipe.tables import Recipe
from mmgen.registry import KINDS, installed

ROOT = Path(__file__).resolve().parents[1]
TORCH_FREE = """
    mmgen.cli mmgen.configs mmgen.decoding mmgen.errors mmgen.files mmgen.hookspecs mmgen.progress mmgen.registry
    mmgen.scaffold mmgen.recipe.json_schema mmgen.recipe.layers mmgen.recipe.load mmgen.recipe.show
""".split()
ANY_WORDS = {"causal", "regions", "score", "table", "text"}  # words with other meanings, and parts of ours


def test_the_core_names_no_part():
    """No string in the core is the recipe name of one of our parts, except words with other meanings. The suites and
    the scaffold show parts to plugin authors."""
    names = {part.name for part in installed().parts if part.source.distribution == "mmgen-framework"} - ANY_WORDS
    for path in (ROOT / "mmgen").rglob("*.py"):
        if not {"testing", "scaffold"} & {*path.parts}:
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            assert not names & {node.value for node in nodes if isinstance(node, ast.Constant)}, path


def test_a_kind_is_a_hook_and_the_class_it_returns():
    """A recipe's tables follow from the recipe's class, and each class is exported by `mmgen`."""
    for kind, (hook, config) in KINDS.items():
        assert hook == f"register_{kind}s" and getattr(mmgen, config.__name__) is config
    tables = nested_kinds(Recipe)
    assert {*tables.values()} <= {kind for kind, (_, config) in KINDS.items() if config.in_recipes}
    assert tables["data"] == "dataset" and tables["inputs"] == "embedder"


def test_no_text_tells_people_to_install_a_name_that_no_index_has():
    """`pip install NAME` of a name that anybody could register is not advice; a checkout is ('.[serve]')."""
    folders = [ROOT / "mmgen", ROOT / "plugins", ROOT / "recipes"]
    texts = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".toml", ".txt", ".md")]
    advice = re.compile(r"mmgen-framework\[|pip install [^`\n]*mmgen-framework")
    assert not [path for path in texts if advice.search(path.read_text(encoding="utf-8"))]


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_torch_starts_only_when_a_part_is_built_and_plugins_need_no_heavy_library():
    code = (
        f"import sys, {', '.join(TORCH_FREE)}; assert 'torch' not in sys.modules; "
        "from mmgen.registry import installed; r = installed(); print(len(r.parts) > 20, r.broken, [m "
        "for m in ('torch', 'numpy', 'h5py', 'PIL', 'tqdm', 'transformers', 'timm') if m in sys.modules])"
    )
    assert run_python(code) == "True () []\n"


def test_a_module_says_what_it_holds_and_is_found_without_tricks():
    """No file gathers what belongs nowhere, and none but the registry, for files of plugins, edits the search path."""
    for path in [*(ROOT / "mmgen").rglob("*.py"), *(ROOT / "plugins").rglob("*.py")]:
        assert path.stem not in ("utils", "common", "helpers", "misc", "base"), path
        edits = re.search(r"sys\.path(\.|\[| \+?= )", path.read_text(encoding="utf-8"))
        assert not edits or path == ROOT / "mmgen/registry.py", path


def test_every_package_is_typed_and_in_the_contracts_of_imports():
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    packages = [ROOT / "mmgen", *(path.parent for path in (ROOT / "plugins").glob("*/__init__.py"))]
    assert all((package / "py.typed").is_file() for package in packages)
    names = sorted(package.name for package in packages)
    (layers,) = (contract["layers"] for contract in linter["contracts"] if "mmgen" in contract.get("layers", ()))
    assert names == sorted(linter["root_packages"]) == sorted(re.findall(r"\w+", " ".join(layers)))
