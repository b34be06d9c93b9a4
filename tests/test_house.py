"""What holds for the house as a whole, beside the imports (`lint-imports`): the core names no part, torch starts
late, and every part is documented."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TORCH_FREE = """
    mmgen.cli mmgen.configs mmgen.decoding mmgen.errors mmgen.files mmgen.hookspecs mmgen.progress mmgen.registry
    mmgen.scaffold mmgen.recipe.json_schema mmgen.recipe.layers mmgen.recipe.load mmgen.recipe.show
""".split()
ANY_WORDS = {"causal", "regions", "table", "text"}  # words with other meanings, and parts of ours


def test_the_core_names_no_part():
    """No string in the core is the recipe name of one of our parts, except words with other meanings. The suites and
    the scaffold show parts to plugin authors."""
    from mmgen.registry import installed

    names = {part.name for part in installed().parts if part.source.distribution == "mmgen-framework"} - ANY_WORDS
    rooms = [
        path
        for path in (ROOT / "mmgen").rglob("*.py")
        if path.relative_to(ROOT).parts[1] not in ("testing", "scaffold")
    ]
    named = [
        f"{path}:{node.lineno}: names '{node.value}'"
        for path in rooms
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names
    ]
    assert not named, "\n".join(named)


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


def test_torch_starts_only_when_a_part_is_built():
    code = f"""
import importlib, sys
for name in {TORCH_FREE}:
    importlib.import_module(name)
    assert 'torch' not in sys.modules, name + ' imports torch'
"""
    run_python(code)


def test_plugins_are_discovered_without_torch_and_other_heavy_libraries():
    code = (
        "import sys; from mmgen.registry import installed; r = installed(); print(len(r.parts) > 20, r.broken, [m "
        "for m in ('torch', 'numpy', 'h5py', 'PIL', 'tqdm', 'transformers', 'timm') if m in sys.modules])"
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


def test_every_package_is_typed():
    packages = [ROOT / "mmgen", *(ROOT / "plugins").glob("mmgen_*/__init__.py")]
    assert [
        str(path) for path in packages if not (path.parent if path.is_file() else path).joinpath("py.typed").is_file()
    ] == []


def test_a_module_says_what_it_holds_and_is_found_without_tricks():
    """No file gathers what belongs nowhere, and none but the registry, for files of plugins, edits the search path."""
    for path in [*(ROOT / "mmgen").rglob("*.py"), *(ROOT / "plugins").rglob("*.py")]:
        assert path.stem not in ("utils", "common", "helpers", "misc", "base"), path
        edits = re.search(r"sys\.path(\.|\[| \+?= )", path.read_text(encoding="utf-8"))
        assert not edits or path == ROOT / "mmgen/registry.py", path


def test_the_contracts_of_imports_name_every_package():
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    plugins = {path.parent.name for path in (ROOT / "plugins").glob("*/__init__.py")}
    assert sorted(linter["root_packages"]) == sorted({"mmgen", *plugins})
    (layers,) = (contract["layers"] for contract in linter["contracts"] if "mmgen" in contract.get("layers", ()))
    assert sorted(re.findall(r"\w+", " ".join(layers))) == sorted({"mmgen", *plugins})
