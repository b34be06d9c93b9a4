"""The design's maxims that can be checked in the source: imports, and what happens on import."""

import ast
import functools
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from kit.source import forget, nodes, parsed  # noqa: F401

ROOT = Path(__file__).resolve().parents[1]
HOUSE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mmgen"]
ENTRANCES = {"__init__", "__main__"}  # what stands at the door imports from where it likes
TORCH_FREE = [
    "hookspecs",
    "configs",
    "decoding",
    "registry",
    "errors",
    "progress",
    "files",
    "recipe.load",
    "recipe.show",
    "recipe.reference",
    "recipe.json_schema",
    "recipe.layers",
    "cli",
    "scaffold",
]
TRANSFORMERS = {
    "plugins/mmgen_clipscore/metric.py",
    "plugins/mmgen_encoders/any_encoder.py",
    "plugins/mmgen_encoders/attention.py",
    "plugins/mmgen_encoders/encoder.py",
    "plugins/mmgen_encoders/reach.py",
    "plugins/mmgen_encoders/loading.py",
    "plugins/mmgen_encoders/published_weights.py",
    "plugins/mmgen_encoders/vocabulary.py",
    "plugins/mmgen_pictures/vision.py",
    "plugins/mmgen_regions/detector.py",
    "mmgen/commands.py",
    "mmgen/search.py",
}
MOST_TOP_LEVEL, MOST_PARAMETERS = 23, 7
ANY_WORDS = {"causal", "regions", "text"}  # an attention, a count in a store, a key of files; and parts of ours
BY_NAME = {"importlib.import_module", "import_module", "__import__", "exec", "eval"}  # import what a text says
READS = {"open", "read_bytes", "read_text"}
UNCHECKED = {  # functions that read files without `errors.regular`
    *("mmgen.cli.recipes.init", "mmgen.scaffold._templates", "mmgen.testing.tiny.build"),  # files of mmgen
    *("mmgen.report.web_page.render", "mmgen.report.web_page.web_file", "mmgen.discovery.version.declared_version"),
    "mmgen.features.hdf5_check._memory_used",  # a file of the system
    *("mmgen.files.locked", "mmgen.files.refuse_overwriting", "mmgen.report.page._probe_results"),  # known to be files
    *("mmgen.inference.export.export", "mmgen_encoders.published_config.published_config"),
    *("mmgen.inference.answers._complete_lines", "mmgen.inference.query_digest._ends_of"),
    "mmgen_serve.command.read_token",  # a shell hands over a secret as a pipe
}
HANDED_ON = {  # functions that take **names and hand them on, since the names are another's
    "mmgen.features.row_writer._create_dataset",  # h5py's
    "mmgen.search._check_early_stop_heuristic",  # an override of a method of transformers
    "mmgen.testing.suite.__init_subclass__",  # Python's
    "mmgen.testing.suite.seeded",  # those of any function that builds
    "mmgen.testing.writing.write",  # fields of Decoding, which checks them
    "mmgen.testing.writing.offered",
    "mmgen.training.fsdp.forward",  # those of any layer
    "mmgen_pictures.embedder.forward",  # those of any input of features
    "mmgen_serve.command.serve",  # options of the command line, which are fields of Options
}
core = sorted((ROOT / "mmgen").rglob("*.py"))
plugins = sorted((ROOT / "plugins").rglob("*.py"))
ours = [*core, *plugins]


def name_of(path: Path) -> str:
    """The module name of a file: "mmgen.data.plan"; for a package, that of its folder."""
    root = ROOT if path.is_relative_to(ROOT / "mmgen") else ROOT / "plugins"
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


modules = {name_of(path): path for path in ours}


@functools.cache
def imports(path: Path) -> set[str]:
    """Modules that a file imports, at the top and inside functions, or uses as `mmgen.ROOM.MODULE`; without those
    for type checkers only."""
    package = name_of(path).split(".") if path.stem == "__init__" else name_of(path).split(".")[:-1]
    unread = {
        id(inner)
        for node in nodes(path)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for only in node.body
        for inner in ast.walk(only)
    }
    imported_modules = set()
    for node in nodes(path):
        if id(node) in unread:
            continue
        if isinstance(node, ast.Import):
            imported_modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            inner = {f"{module}.{alias.name}" for alias in node.names} & modules.keys()
            imported_modules |= inner or {module}
        elif isinstance(node, ast.Attribute) and (name := dotted(node)) in modules:
            imported_modules.add(name)
    return imported_modules


def dotted(node: ast.expr) -> str:
    """The dotted name of an expression such as mmgen.model.compose; empty for others."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def room(module: str) -> str | None:
    """The room of the core that contains a module."""
    first, *rest = module.split(".")
    if first != "mmgen" or not rest:
        return None
    return rest[0] if (ROOT / "mmgen" / rest[0]).is_dir() else "top"


def within(module: str) -> str:
    """The module's first name below `mmgen`, as in the public lists."""
    return module.split(".")[1] if "." in module else ""


def report(offenders: list[str]) -> None:
    assert not offenders, "\n" + "\n".join(offenders)


def test_rooms_are_those_of_the_plan():
    folders = {path.name for path in (ROOT / "mmgen").iterdir() if (path / "__init__.py").exists()}
    assert folders == set(HOUSE["rooms"]) - {"top"}
    top = {path.stem for path in (ROOT / "mmgen").glob("*.py")} - ENTRANCES
    public = {*HOUSE["parts"], *HOUSE["scripts"]}
    assert len(top | ENTRANCES) <= MOST_TOP_LEVEL
    assert top <= public, f"every top-level module is public: {top - public}"
    assert public <= top | folders, f"no such modules: {public - top - folders}"


def test_a_file_imports_only_from_rooms_below():
    order = HOUSE["rooms"]
    wrong = []
    for path in core:
        own_room = room(name_of(path))
        if path.stem in ENTRANCES and path.parent == ROOT / "mmgen":
            continue
        for module in imports(path):
            imported_room = room(module)
            if imported_room and imported_room != own_room and order.index(imported_room) > order.index(own_room):
                wrong.append(f"{name_of(path)} ({own_room}) imports {module} ({imported_room})")
    report(wrong)


def test_modules_of_a_room_or_a_plugin_import_without_circles():
    """Packages of plugins register their configs, which import the part's module in `build`."""
    doors = {ROOT / "mmgen" / f"{stem}.py" for stem in ENTRANCES}
    paths = {
        name: path
        for name, path in modules.items()
        if path not in doors and (path in core or path.stem not in ENTRANCES)
    }
    edges = {name: {m for m in imports(path) if m in paths and m != name} for name, path in paths.items()}
    state: dict[str, int] = {}
    circles = []

    def visit(name: str, way: tuple[str, ...]) -> None:
        if state.get(name) == 1:
            circles.append(" -> ".join([*way[way.index(name) :], name]))
        if name in state:
            return
        state[name] = 1
        for imported in sorted(edges[name]):
            visit(imported, (*way, name))
        state[name] = 2

    for name in sorted(edges):
        visit(name, ())
    report(circles)


def test_modules_are_imported_by_statements_that_can_be_read():
    """Otherwise the import tests would miss it. Commands of mmgen are imported when they are called, and are in one
    room."""
    offenders = {
        name_of(path)
        for path in ours
        for node in nodes(path)
        if isinstance(node, ast.Call) and dotted(node.func) in BY_NAME
    }
    assert offenders == {"mmgen.cli.lookup"}


def test_the_core_names_no_plugin():
    names = [folder.name for folder in (ROOT / "plugins").iterdir() if (folder / "__init__.py").exists()]
    report(
        [f"{name_of(path)} names {name}" for path in core for name in names if name in path.read_text(encoding="utf-8")]
    )


def test_the_core_names_no_part():
    """No string in the core is the recipe name of one of our parts, except words with other meanings. The suites and
    the scaffold show parts to plugin authors."""
    from mmgen.registry import installed

    names = {part.name for part in installed().parts if part.source.distribution == "mmgen-framework"} - ANY_WORDS
    report(
        [
            f"{path}:{node.lineno}: names '{node.value}'"
            for path in core
            if room(name_of(path)) not in ("testing", "scaffold")
            for node in nodes(path)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names
        ]
    )


def reached(starts: set[str], package: str) -> set[str]:
    """Modules of a package that these modules import, directly or indirectly, including themselves."""
    names: set[str] = set()
    waiting = {module for module in starts if module.split(".")[0] == package and module in modules}
    while waiting:
        names |= waiting
        waiting = {
            m for name in waiting for m in imports(modules[name]) if m.startswith(f"{package}.") and m in modules
        }
        waiting -= names
    return names


def commands() -> set[Path]:
    """Files of plugins that run only when a command is called: those that a `CommandConfig` imports in its `build`,
    and their imports, without files that the package's parts need too."""
    names = set()
    for package, front in modules.items():
        if front.stem != "__init__" or front not in plugins or "." in package:
            continue
        tree = parsed(front)
        called = [
            node
            for cls in tree.body
            if isinstance(cls, ast.ClassDef) and any(ast.unparse(base).endswith("CommandConfig") for base in cls.bases)
            for node in ast.walk(cls)
            if isinstance(node, ast.ImportFrom)
        ]
        of_commands = {f"{package}.{node.module}" for node in called}
        of_parts = {
            module
            for node in nodes(front)
            if isinstance(node, ast.ImportFrom) and node.level and node not in called
            for module in [f"{package}.{node.module}"]
        }
        names |= {modules[m] for m in reached(of_commands, package) - reached(of_parts, package) - {package}}
    return names


def test_a_plugin_sees_only_what_is_public():
    """Parts may use the first list, modules of commands both; a plugin imports no plugins except the public ones."""
    wrong, of_commands = [], commands()
    for path in plugins:
        own_package = name_of(path).split(".")[0]
        seen = {*HOUSE["parts"], *(HOUSE["scripts"] if path in of_commands else ())}
        for module in imports(path):
            first = module.split(".")[0]
            if first.startswith("mmgen_") and first not in (own_package, *HOUSE["plugins"]):
                wrong.append(f"{name_of(path)} sees another plugin: {module}")
            if room(module) and within(module) not in seen:
                wrong.append(f"{name_of(path)} sees {module}, which is not public for it")
    report(wrong)


def test_the_kit_of_vision_and_language_imports_no_plugin():
    kit = [path for path in plugins if name_of(path).split(".")[0] == "mmgen_vl"]
    report(
        [
            f"{name_of(path)} imports {module}"
            for path in kit
            for module in imports(path)
            if module.startswith("mmgen_") and module.split(".")[0] != "mmgen_vl"
        ]
    )


def test_nothing_global_and_every_file_says_what_it_does():
    for path in ours:
        assert ast.get_docstring(parsed(path)), f"{path} opens with what it does"
        assert not [node for node in nodes(path) if isinstance(node, ast.Global)], path
        assert not re.search(r"sys\.path *[.[=+]", path.read_text(encoding="utf-8")), path  # it may be read
        assert not {"utils", "common", "helpers", "misc", "base"} & set(path.with_suffix("").parts[-2:]), path


def test_what_a_newer_transformers_changes_is_mended_in_few_files():
    """The adapters of encoders and search, loading and saving, a tokenizer's class, a detector, the systems of the
    benchmark, CLIPScore, and logging."""
    files = {
        str(path.relative_to(ROOT)) for path in ours if any(m.split(".")[0] == "transformers" for m in imports(path))
    }
    assert files == TRANSFORMERS


def functions(path: Path) -> list[ast.FunctionDef]:
    return [node for node in nodes(path) if isinstance(node, ast.FunctionDef)]


def click_command(node: ast.FunctionDef) -> bool:
    """Whether click calls the function: it has a parameter for every option of the command line."""
    return any(ast.unparse(decorator).split("(")[0].endswith(".command") for decorator in node.decorator_list)


def test_functions_have_few_parameters():
    wrong = []
    for path in ours:
        for node in functions(path):
            parameters = [
                parameter.arg for parameter in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            ]
            count = len([name for name in parameters if name not in ("self", "cls")])
            if count > MOST_PARAMETERS and not click_command(node):
                wrong.append(f"{path}:{node.lineno}: {node.name} has {count} parameters; at most {MOST_PARAMETERS}")
    report(wrong)


def test_no_kwargs_pass_through_layers():
    offenders = {
        f"{name_of(path)}.{node.name}"
        for path in ours
        for node in functions(path)
        if node.args.kwarg
        for call in ast.walk(node)
        if isinstance(call, ast.Call)
        for keyword in call.keywords
        if keyword.arg is None and ast.unparse(keyword.value) == node.args.kwarg.arg
    }
    assert offenders == HANDED_ON


def test_no_reader_waits_for_a_pipe():
    """Reading a pipe without a writer would never end; `errors.regular` refuses it."""
    offenders = {
        f"{name_of(path)}.{function.name}: {ast.unparse(call)}"
        for path in ours
        for function in functions(path)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in READS
        if call.func.attr != "open" or (call.args and ast.unparse(call.args[0]).startswith("'r"))
        if not ast.unparse(call.func.value).startswith("regular(")
    }
    report(sorted(offender for offender in offenders if offender.partition(":")[0] not in UNCHECKED))


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_torch_starts_only_when_a_part_is_built():
    names = [f"mmgen.{name}" for name in TORCH_FREE]
    code = f"""
import importlib, sys
for name in {names}:
    importlib.import_module(name)
    assert 'torch' not in sys.modules, name + ' imports torch'
"""
    run_python(code)


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


def test_every_package_is_typed():
    packages = [ROOT / "mmgen", *(ROOT / "plugins").glob("mmgen_*/__init__.py")]
    assert [
        str(path) for path in packages if not (path.parent if path.is_file() else path).joinpath("py.typed").is_file()
    ] == []


def test_building_needs_setuptools_alone():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["build-system"]["requires"] == ["setuptools>=77"]


def test_the_version_stands_once():
    """The version is in mmgen/__init__.py; packaging reads it there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "mmgen.__version__"}
