"""Discovery: every part knows its owner; a plugin that fails has a face, and never stops another."""

import subprocess
import sys
import textwrap
from types import ModuleType
from typing import Literal

import pytest

import mmgen
from mmgen.errors import PluginError
from mmgen.registry import Source, collect


def plugin(code: str, name: str = "audio", distribution: str = "mmgen-audio", version: str = "0.3"):
    module = ModuleType(f"mmgen_{name}")
    exec(textwrap.dedent(code), vars(module))
    return Source(name, distribution, version), module


AUDIO = """
    from typing import Literal
    import mmgen
    class Audio(mmgen.EmbedderConfig):
        "Sounds."
        type: Literal["audio"] = "audio"
    @mmgen.hookimpl
    def register_embedders():
        return [Audio]
"""


def broken(code: str) -> str:
    return str(collect([plugin(code)]).broken[0])


def test_a_part_knows_who_provides_it():
    part = collect([plugin(AUDIO)]).get("embedder", "audio")
    assert (part.name, str(part.source), part.summary) == ("audio", "mmgen-audio 0.3", "Sounds.")


def test_two_owners_of_a_name_are_named_and_only_an_error_when_it_is_wanted():
    registry = collect([plugin(AUDIO), plugin(AUDIO, "other", "mmgen-other", "1.0")])
    assert registry.conflicts() == ["two plugins provide the embedder 'audio': mmgen-audio 0.3 and mmgen-other 1.0; uninstall one of them"]
    with pytest.raises(PluginError, match="mmgen-audio 0.3 and mmgen-other 1.0"):
        registry.get("embedder", "audio")


def test_an_unknown_name_gets_did_you_mean_what_is_there_and_what_is_broken():
    registry = collect([plugin(AUDIO), plugin("import mmgen\n@mmgen.hookimpl\ndef register_embedders(): raise ImportError(\"No module named 'torchaudio'\")", "b", "mmgen-b", "2.0")])
    with pytest.raises(PluginError) as caught:
        registry.get("embedder", "audioo")
    assert str(caught.value).splitlines() == [
        "no embedder is called 'audioo'; did you mean 'audio'?",
        "  installed embedders: audio",
        "  plugin 'b' (mmgen-b 2.0) failed to load: register_embedders: No module named 'torchaudio'",
    ]


def test_a_misspelt_hook_is_its_plugins_error():
    assert broken("import mmgen\n@mmgen.hookimpl\ndef register_embeders(): return []") == (
        "plugin 'audio' (mmgen-audio 0.3) failed to load: there is no hook 'register_embeders'; did you mean 'register_embedders'?"
    )


def test_an_undecorated_hook_is_told():
    assert broken("def register_embedders(): return []").endswith("register_embedders is not decorated with @mmgen.hookimpl")


def test_a_hook_with_arguments_is_told():
    assert "failed to load: " in broken("import mmgen\n@mmgen.hookimpl\ndef register_embedders(registry): return []")


def test_a_class_of_the_wrong_kind_is_told():
    assert broken("import mmgen\n@mmgen.hookimpl\ndef register_embedders(): return [int]").endswith(
        "register_embedders: 'int' is not a subclass of mmgen.EmbedderConfig"
    )


def test_a_config_without_a_name_is_told():
    code = "import mmgen\nclass A(mmgen.EmbedderConfig): pass\n@mmgen.hookimpl\ndef register_embedders(): return [A]"
    assert 'A has no name; give it  type: Literal["..."] = "..."' in broken(code)


def test_one_raising_hook_loses_nobody_elses_parts():
    registry = collect([plugin("import mmgen\n@mmgen.hookimpl\ndef register_embedders(): 1 / 0", "bad"), plugin(AUDIO)])
    assert [part.name for part in registry.parts] == ["audio"]
    assert "ZeroDivisionError" in str(registry.broken[0])


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder on the path in which fake distributions are installed."""

    def install(name: str, module: str, code: str, version: str = "0.3") -> None:
        info = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[mmgen]\n{module.removeprefix('mmgen_')} = {module}\n")
        (tmp_path / f"{module}.py").write_text(textwrap.dedent(code))

    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return install


def mmgen_plugins(*options: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "mmgen", "plugins", *options], capture_output=True, text=True)


def test_an_installed_plugin_that_cannot_be_imported_is_shown_and_the_others_go_on(site):
    site("mmgen-sounds", "mmgen_sounds", "import torchaudio_that_is_not_there")
    site("mmgen-audio", "mmgen_audio", AUDIO)
    shown = mmgen_plugins()
    assert shown.returncode == 0
    assert "mmgen-audio 0.3" in shown.stdout and "Sounds." in shown.stdout and "regions" in shown.stdout
    assert shown.stderr == "error: plugin 'sounds' (mmgen-sounds 0.3) failed to load: No module named 'torchaudio_that_is_not_there'\n"
    assert mmgen_plugins("--strict-plugins").returncode == 1


def test_a_plugin_cannot_quietly_take_over_a_name(site):
    site("mmgen-boxes", "mmgen_boxes", AUDIO.replace("audio", "text"))
    shown = mmgen_plugins()
    assert "error: two plugins provide the embedder 'text': mmgen-boxes 0.3 and mmgen-framework" in shown.stderr


def test_the_smallest_plugin_fits_in_twenty_lines():
    assert len([line for line in textwrap.dedent(AUDIO).splitlines() if line]) <= 20


class Named(mmgen.EmbedderConfig):
    type: Literal["named"] = "named"


def test_a_config_is_frozen_and_closed():
    from pydantic import ValidationError

    with pytest.raises(ValidationError):
        Named(nonsense=1)
    with pytest.raises(ValidationError):
        Named().reads = ("x",)
