"""Discovery: every part has an owner; a failing plugin is named, and never stops another."""

import subprocess
import textwrap
from pathlib import Path

import pytest
from kit.thirdparty import AUDIO, plugin
from kit.toys import RECIPE, mmgen_here

from mmgen.errors import PluginError
from mmgen.registry import collect


def broken(code: str) -> str:
    return str(collect([plugin(code)]).broken[0])


def test_a_part_knows_who_provides_it():
    part = collect([plugin(AUDIO)]).get("embedder", "audio")
    assert (part.name, str(part.source), part.summary) == ("audio", "mmgen-audio 0.3", "Sounds.")


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
    registry = collect(
        [
            plugin(AUDIO),
            plugin(
                'import mmgen\n@mmgen.hookimpl\ndef register_embedders(): raise ImportError("No module named '
                "'torchaudio'\")",
                "b",
                "mmgen-b",
                "2.0",
            ),
        ]
    )
    with pytest.raises(PluginError) as caught:
        registry.get("embedder", "audioo")
    assert str(caught.value).splitlines() == [
        "no embedder is called 'audioo'; did you mean 'audio'?",
        "  installed embedders: audio",
        "  plugin 'b' (mmgen-b 2.0) failed to load: register_embedders: No module named 'torchaudio'",
    ]


def test_a_misspelt_hook_is_its_plugins_error():
    assert broken("import mmgen\n@mmgen.hookimpl\ndef register_embeders(): return []") == (
        "plugin 'audio' (mmgen-audio 0.3) failed to load: unknown hook 'register_embeders'; did you mean "
        "'register_embedders'?"
    )


def test_an_undecorated_hook_is_reported():
    assert broken("def register_embedders(): return []").endswith(
        "register_embedders is not decorated with @mmgen.hookimpl"
    )


def test_a_class_of_the_wrong_kind_is_reported():
    assert broken("import mmgen\n@mmgen.hookimpl\ndef register_embedders(): return [int]").endswith(
        "register_embedders: 'int' is not a subclass of mmgen.EmbedderConfig"
    )


def test_a_config_without_a_name_is_reported():
    code = "import mmgen\nclass A(mmgen.EmbedderConfig): pass\n@mmgen.hookimpl\ndef register_embedders(): return [A]"
    assert 'A needs one fixed name; write  type: Literal["..."] = "..."' in broken(code)


@pytest.mark.parametrize(
    "written", ['type: str = "audio"', 'type: Literal["video"] = "audio"', 'type: Literal[""] = ""']
)
def test_a_name_that_cannot_be_written_in_a_recipe_is_reported(written):
    assert broken(AUDIO.replace('type: Literal["audio"] = "audio"', written)) == (
        "plugin 'audio' (mmgen-audio 0.3) failed to load: register_embedders: Audio needs one fixed name; write  "
        'type: Literal["..."] = "..."'
    )


def test_a_config_that_builds_nothing_is_reported():
    assert broken(AUDIO.replace("def build", "def built")).endswith(
        "register_embedders: Audio does not define build(), which creates the part"
    )


def test_a_plugin_without_any_hook_is_not_silent():
    assert broken("import mmgen").startswith(
        "plugin 'audio' (mmgen-audio 0.3) failed to load: provides nothing: mmgen_audio has none of the hooks "
        "register_embedders, "
    )


def test_a_part_that_one_plugin_provides_twice_is_reported():
    (conflict,) = collect([plugin(AUDIO.replace("[Audio]", "[Audio, Audio]"))]).conflicts()
    assert conflict.startswith("the embedder 'audio' is provided by mmgen-audio 0.3 and mmgen-audio 0.3; ")


@pytest.mark.parametrize("code", ["sys.exit(3)", "1 / 0"])
def test_a_hook_that_gives_up_stops_nobody(code):
    registry = collect(
        [plugin(f"import mmgen, sys\n@mmgen.hookimpl\ndef register_embedders(): {code}", "bad"), plugin(AUDIO)]
    )
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


def test_a_recipe_that_needs_a_taken_name_stops_and_another_does_not(site, tmp_path):
    site("mmgen-boxes", "mmgen_boxes", AUDIO.replace("audio", "regions"))
    (tmp_path / "toy.toml").write_text(RECIPE)
    checked = [
        mmgen_here(tmp_path, "check", "toy.toml", *more) for more in ([], ["--set", 'inputs.image.type="regions"'])
    ]
    assert checked[0].returncode == 0, checked[0].stderr
    assert checked[1].stderr.startswith(
        "error: --set inputs.image.type=\"regions\": inputs.image.type: the embedder 'regions' is provided by mmgen"
    )
    assert mmgen_plugins("--strict-plugins").returncode == 1


def test_the_smallest_plugin_fits_in_twenty_lines():
    assert len([line for line in textwrap.dedent(AUDIO).splitlines() if line]) <= 20
