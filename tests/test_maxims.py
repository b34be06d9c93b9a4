"""The design's maxims that can be read off the source: who imports whom, what import does, how large files are."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FLOORS = [
    {"errors", "configs", "tensors", "deprecation"},
    {
        "hookspecs",
        "parts",
        "attention",
        "hdf5",
        "walk",
        "store",
        "shards",
        "filling",
        "journal",
        "memory",
        "features",
        "vision",
        "images",
        "progress",
        "gaze",
        "drawing",
    },
    {"registry", "layers"},
    {"recipe", "reference", "schema", "show"},
    {"model", "data", "datasets", "checkpoint", "runfolder", "processes"},
    {"stages", "report"},
    {"run", "ask", "survey", "scoring", "judging", "probing", "bench"},
    {"cli", "scaffold", "__main__"},
]
OPEN_TO_PLUGINS = {
    "deprecation",
    "errors",
    "configs",
    "tensors",
    "hookspecs",
    "parts",
    "attention",
    "hdf5",
    "store",
    "memory",
    "features",
    "vision",
    "images",
    "gaze",
    "drawing",
    "testing",
}
TORCH_FREE = [
    "__init__",
    "hookspecs",
    "configs",
    "registry",
    "recipe",
    "layers",
    "errors",
    "show",
    "cli",
    "progress",
    "reference",
    "schema",
    "scaffold",
    "deprecation",
]
core = sorted(path for path in (ROOT / "mmgen").rglob("*.py"))
plugins = sorted((ROOT / "plugins").rglob("*.py"))


def imports(path: Path) -> list[tuple[str, bool]]:
    """Absolute module names that a file imports, and whether at its top level."""
    package = path.relative_to(ROOT if path.is_relative_to(ROOT / "mmgen") else ROOT / "plugins").with_suffix("").parts
    tree = ast.parse(path.read_text(encoding="utf-8"))
    hidden = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = list(package[: len(package) - node.level]) if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            names = [f"{module}.{alias.name}" for alias in node.names]
        found += [(name, id(node) not in hidden) for name in names]
    return found


def room(module: str) -> str | None:
    """The room of the core that a module name lies in."""
    parts = module.split(".")
    rooms = set().union(*FLOORS) | {"testing"}
    return parts[1] if parts[0] == "mmgen" and len(parts) > 1 and parts[1] in rooms else None


def floor(name: str) -> int:
    return next(number for number, rooms in enumerate(FLOORS) if name in rooms)


@pytest.mark.parametrize("path", core, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_imports_only_from_floors_below(path):
    own = path.relative_to(ROOT / "mmgen").parts[0].removesuffix(".py")
    if own in ("__init__", "testing"):
        return
    for module, top in imports(path):
        if top and (other := room(module)) and other != own:
            assert floor(other) <= floor(own), f"{own} (floor {floor(own)}) imports {other} (floor {floor(other)})"


@pytest.mark.parametrize("path", core, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_core_names_no_plugin(path):
    assert not [module for module, _ in imports(path) if module.startswith("mmgen_")]
    names = [folder.name for folder in (ROOT / "plugins").iterdir() if folder.is_dir()]
    assert not [name for name in names if name in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", plugins, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_plugin_sees_the_front_door_and_the_lower_floors_only(path):
    own = path.relative_to(ROOT / "plugins").parts[0]
    for module, _ in imports(path):
        parts = module.split(".")
        assert not parts[0].startswith("mmgen_") or parts[0] == own, f"sees another plugin: {module}"
        if parts[0] == "mmgen" and len(parts) > 1 and (ROOT / "mmgen" / f"{parts[1]}.py").exists():
            assert parts[1] in OPEN_TO_PLUGINS, f"sees {module}"


@pytest.mark.parametrize("path", [*core, *plugins], ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_global_and_every_file_says_what_it_does(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "a file opens with what it does"
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Global)]
    assert "sys.path" not in path.read_text(encoding="utf-8")
    assert not {"utils", "common", "helpers", "misc", "base"} & set(path.with_suffix("").parts[-2:])


def test_what_a_newer_transformers_changes_is_mended_in_few_files():
    """The encoders' adapter and the search's; what loads and saves, a tokenizer's class, a detector, what is raced
    against, how loud it is."""
    found = {
        str(path.relative_to(ROOT))
        for path in [*core, *plugins]
        for module, _ in imports(path)
        if module.split(".")[0] == "transformers"
    }
    adapters = {"plugins/mmgen_encoders/encoder.py", "plugins/mmgen_masked/search.py"}
    beside = {
        "plugins/mmgen_encoders/loading.py",
        "plugins/mmgen_encoders/vocabulary.py",
        "plugins/mmgen_regions/detector.py",
        "mmgen/bench/contestants.py",
        "mmgen/bench/racing.py",
        "mmgen/cli/runs.py",
    }
    assert found == adapters | beside


@pytest.mark.parametrize("path", [*core, *plugins], ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_small(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 360  # 300 again when the five longest are split, in the next steps
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 60, f"{node.name} has {node.end_lineno - node.lineno + 1} lines"


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", TORCH_FREE)
def test_torch_starts_only_when_a_part_is_built(name):
    module = "mmgen" if name == "__init__" else f"mmgen.{name}"
    assert run_python(f"import sys, {module}; print('torch' in sys.modules)") == "False\n"


def test_plugins_are_discovered_without_torch_and_other_heavy_libraries():
    code = (
        "import sys; from mmgen.registry import installed; r = installed(); print(len(r.parts) > 20, r.broken, [m "
        "for m in ('torch', 'numpy', 'h5py', 'PIL', 'rich', 'transformers', 'timm') if m in sys.modules])"
    )
    assert run_python(code) == "True () []\n"


def test_every_config_survives_json():
    from mmgen.registry import installed

    for part in installed().parts:
        required = [name for name, info in part.config.model_fields.items() if info.is_required()]
        config = part.config.model_construct(**{name: "x" for name in required}) if required else part.config()
        again = json.loads(config.model_dump_json())
        assert again["type"] == part.name
        if not required:
            assert part.config.model_validate_json(json.dumps(again)) == config


def test_every_field_and_every_part_is_documented():
    from mmgen.registry import installed

    for part in installed().parts:
        assert part.summary, f"{part.config.__name__} has no docstring"
        for name, info in part.config.model_fields.items():
            assert name == "type" or info.description, f"{part.config.__name__}.{name} has no description"


def test_nothing_but_mmgen_becomes_importable():
    """The wheel's top-level packages: mmgen and the plugins; never plugins, recipes or tests."""
    from importlib.metadata import distribution

    tops = set((distribution("mmgen-framework").read_text("top_level.txt") or "").split())
    assert tops and all(name == "mmgen" or name.startswith("mmgen_") for name in tops), tops
