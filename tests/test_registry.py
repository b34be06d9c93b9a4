"""Discovery: every part has an owner; a failing plugin is named, and never stops another."""

import subprocess
import textwrap
from pathlib import Path

import pytest
from kit.thirdparty import AUDIO, plugin
from kit.toys import mmgen_here

from mmgen.errors import PluginError
from mmgen.registry import collect


def test_a_summary_is_the_first_sentence_whole():
    """Although the sentence continues on the docstring's next line."""
    long = AUDIO.replace('"Sounds."', '"Sounds (Doe et al., 2019), cut\\nat 1.5 s, as frames. Then more."')
    part = collect([plugin(long)]).get("embedder", "audio")
    assert part.summary == "Sounds (Doe et al., 2019), cut at 1.5 s, as frames."


def test_two_owners_of_a_name_are_an_error_only_when_the_name_is_used():
    registry = collect([plugin(AUDIO), plugin(AUDIO, "other", "mmgen-other", "1.0")])
    assert registry.conflicts() == [
        "the embedder 'audio' is provided by mmgen-audio 0.3 and mmgen-other 1.0; rename or uninstall all but one"
    ]
    with pytest.raises(PluginError, match="mmgen-audio 0.3 and mmgen-other 1.0"):
        registry.get("embedder", "audio")


def test_an_unknown_name_gets_did_you_mean_what_is_there_and_what_is_broken():
    fails = AUDIO.replace("return [Audio]", """raise ImportError("No module named 'torchaudio'")""")
    registry = collect([plugin(AUDIO), plugin(fails, "b", "mmgen-b", "2.0")])
    with pytest.raises(PluginError) as caught:
        registry.get("embedder", "audioo")
    assert str(caught.value).splitlines() == [
        "no embedder is called 'audioo'; did you mean 'audio'?",
        "  installed embedders: audio",
        "  plugin 'b' (mmgen-b 2.0) failed to load: register_embedders: No module named 'torchaudio'",
    ]


NAMED = 'register_embedders: Audio needs one fixed name; write  type: Literal["..."] = "..."'
TYPE = 'type: Literal["audio"] = "audio"'


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "register_embedders",
            "register_embeders",
            "unknown hook 'register_embeders'; did you mean 'register_embedders'?",
        ),
        ("@mmgen.hookimpl", "", "register_embedders is not decorated with @mmgen.hookimpl"),
        ("[Audio]", "[int]", "register_embedders: 'int' is not a subclass of mmgen.EmbedderConfig"),
        (TYPE, "", NAMED),
        (TYPE, 'type: str = "audio"', NAMED),
        (TYPE, 'type: Literal["video"] = "audio"', NAMED),
        ("def build", "def built", "register_embedders: Audio does not define build(), which creates the part"),
        ("def register", "def other", "provides nothing: mmgen_audio has none of the hooks register_embedders, "),
    ],
)
def test_a_mistake_in_a_plugin_is_its_error(old, new, says):
    (error,) = collect([plugin(AUDIO.replace(old, new))]).broken
    assert str(error).startswith(f"plugin 'audio' (mmgen-audio 0.3) failed to load: {says}")


@pytest.mark.parametrize("code", ["sys.exit(3)", "1 / 0"])
def test_a_hook_that_gives_up_stops_nobody(code):
    registry = collect([plugin(AUDIO.replace("return [Audio]", f"import sys; {code}"), "bad"), plugin(AUDIO)])
    assert [part.name for part in registry.parts] == ["audio"] and len(registry.broken) == 1


def mmgen_plugins(*options: str) -> subprocess.CompletedProcess:
    return mmgen_here(Path.cwd(), "plugins", *options)


def test_an_installed_plugin_that_cannot_be_imported_is_shown_and_the_others_go_on(site):
    site("mmgen-sounds", "mmgen_sounds", "import torchaudio_that_is_not_there")
    site("mmgen-audio", "mmgen_audio", AUDIO)
    shown = mmgen_plugins()
    assert shown.returncode == 0
    assert "mmgen-audio 0.3" in shown.stdout and "Sounds." in shown.stdout and "regions" in shown.stdout
    assert (
        shown.stderr
        == "error: plugin 'sounds' (mmgen-sounds 0.3) failed to load: No module named 'torchaudio_that_is_not_there'\n"
    )
    assert mmgen_plugins("--strict-plugins").returncode == 1


def test_the_smallest_plugin_fits_in_twenty_lines():
    assert len([line for line in textwrap.dedent(AUDIO).splitlines() if line]) <= 20
