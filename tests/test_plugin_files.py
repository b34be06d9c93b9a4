"""A file is a plugin: its classes are parts; a mistake in it is a line; processes of workers find it."""

import subprocess
import sys
import textwrap

import pytest
from kit import toys
from kit.recipes import GOOD

import mmgen
from mmgen.errors import PluginError, blame
from mmgen.registry import forgotten_files, installed, load_files

WORDS = """
    from typing import Literal
    import mmgen
    class _Base(mmgen.MetricConfig):
        "What several metrics share."
    class Words(_Base):
        "The number of words."
        type: Literal["words"] = "words"
        def build(self):
            return 1 / 0
"""
HOOK = """
    @mmgen.hookimpl
    def register_metrics():
        return []
"""


@pytest.fixture
def load(tmp_path):
    """Writes a file and executes it."""

    def write(code: str, name: str = "my_part.py"):
        (tmp_path / name).write_text(textwrap.dedent(code))
        load_files([tmp_path / name])
        return installed()

    with forgotten_files():
        yield write


def test_the_classes_of_a_file_are_parts_unless_it_has_hooks(load, tmp_path):
    part = load(WORDS).get("metric", "words")
    assert part.place == f"{tmp_path}/my_part.py:6" and str(part.source).startswith("my_part.py ")
    assert load(WORDS) is installed()  # not executed again
    assert "words" in load(WORDS, "other.py").conflicts()[0]
    assert len(load(WORDS.replace('"words"', '"more"') + HOOK, "hooks.py").conflicts()) == 1
    assert "more" not in installed().names("metric")


def test_an_error_of_a_part_names_its_file(load, tmp_path):
    with pytest.raises(ZeroDivisionError) as error:
        load(WORDS).get("metric", "words").config().build()
    assert blame(error.value).startswith(f"{tmp_path}/my_part.py, Words.build (my_part.py:10): ZeroDivisionError: ")


@pytest.mark.parametrize(
    ("code", "name", "message"),
    [
        ("x =", "my_part.py", "my_part.py:1: SyntaxError: invalid syntax (my_part.py, line 1)"),
        ("\nx = y", "my_part.py", "my_part.py:2: NameError: name 'y' is not defined"),
        ("x = 1", "my_part.py", "my_part.py: provides nothing: my_part has none of the hooks register_embedders, "),
        (WORDS, "json.py", "json.py: another module is called 'json'; rename the file"),
        (WORDS, "my part.py", "my part.py: no such plugin; name a Python file, such as my_metric.py"),
    ],
)
def test_a_mistake_in_a_file_is_a_line(load, tmp_path, code, name, message):
    with pytest.raises(PluginError) as error:
        load(code, name)
    assert str(error.value).startswith(f"{tmp_path}/{message}")
    assert name.partition(".")[0] not in {part.source.plugin for part in installed().parts}


@pytest.mark.slow
def test_workers_that_do_not_fork_find_the_file(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below/my_part.py").write_text(textwrap.dedent(WORDS.replace("1 / 0", "self.type")))
    script = """
        import multiprocessing
        from mmgen.registry import installed, load_files
        if __name__ == "__main__":
            load_files(["below/my_part.py"])
            config = installed().get("metric", "words").config
            with multiprocessing.get_context("forkserver").Pool(1) as pool:
                print(pool.apply(config.build, (config(),)))
    """
    (tmp_path / "script.py").write_text(textwrap.dedent(script))
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "words\n", done.stderr


def test_python_names_the_files_of_a_model(tmp_path):
    with pytest.raises(PluginError, match=r"nowhere.py: no such plugin"):
        mmgen.load(tmp_path, plugins=["nowhere.py"])


def test_a_recipe_is_checked_with_its_own_files_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, file in (("one", "my_part"), ("two", "my_part"), ("wrong", "nowhere")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "my_part.py").write_text(textwrap.dedent(WORDS.replace('"words"', f'"{name}"')))
        metric = f'[metrics.m]\ntype = "{name}"\n'
        (tmp_path / name / "my.toml").write_text(f'plugins = ["{file}.py"]\n{GOOD}{metric}')
    (tmp_path / "none.toml").write_text(f'{GOOD}[metrics.m]\ntype = "one"\n')
    places = [*sys.path]
    done = toys.mmgen_here(tmp_path, "check", "one/my.toml", "two/my.toml", "none.toml", "wrong/my.toml")
    assert done.stderr.startswith("error: none.toml:27: metrics.m.type: no metric is called 'one'")
    assert "\nwrong/my.toml:1: plugins: wrong/nowhere.py: no such plugin; name a Python file, such" in done.stderr
    assert places == sys.path and not installed().files()
