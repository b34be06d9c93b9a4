"""The command `mmgen plugins`: parts and their keys in 80 columns."""

from importlib.metadata import distribution, version

import pytest
from click.testing import CliRunner

from mmgen import __version__ as VERSION
from mmgen.cli import main
from mmgen.storage.environment import _versions_with_requirements, environment


def said(*arguments: str) -> str:
    return CliRunner().invoke(main, arguments).output


def terminal(monkeypatch, columns: int) -> None:
    monkeypatch.setattr("mmgen.cli.plugins.width", lambda stream: columns)


@pytest.mark.parametrize("name", ["mmgen-framework", "MMGen_Framework"])
def test_the_version_is_that_of_the_code_whatever_metadata_come_first(name, tmp_path, monkeypatch):
    """As with an old egg-info in the folder, or an editable installation beside another one."""
    other, ours = tmp_path / "mmgen_framework-9.9.dist-info", distribution("mmgen-framework")
    other.mkdir()
    (other / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")
    (other / "entry_points.txt").write_text(ours.read_text("entry_points.txt"))
    monkeypatch.syspath_prepend(tmp_path)
    _versions_with_requirements.cache_clear()
    assert version("mmgen-framework") == "9.9"  # what importlib finds
    assert said("--version") == f"mmgen, version {VERSION}\n"
    assert f"From mmgen-framework {VERSION}." in said("plugins", "bert")
    assert environment()["versions"]["mmgen-framework"] == VERSION
    _versions_with_requirements.cache_clear()


def test_plugins_fit_80_columns(monkeypatch):
    terminal(monkeypatch, 80)
    text = said("plugins")
    assert max(map(len, text.splitlines())) <= 80
    assert "\nbackbones: [backbone]\n  albert                ALBERT (Lan et al., 2020).\n" in text
    assert "\nextractors: a table `extractor` inside an input\n" in text and "__init__.py" not in text
    assert "plugins/mmgen_encoders/__init__.py:" in said("plugins", "--paths")


def test_keys_of_a_part(monkeypatch):
    terminal(monkeypatch, 50)
    assert said("plugins", "diversity", "captioneval").replace(VERSION, "VERSION") == SHOWN
    assert said("plugins", "judge").endswith("\n  `mmgen judge --help` shows its options.\n\n")
    assert "required: string" in said("plugins", "table")
    assert 'normalize = "none"' in said("plugins", "regions") and '"none", "standard"' in said("plugins", "grid")
    assert ".py:" not in said("plugins", "bert") and ".py:" in said("plugins", "bert", "--paths")
    assert (
        said("plugins", "brt")
        == "error: no part is named 'brt'; did you mean 'bert'?; `mmgen plugins` lists all parts\n"
    )


SHOWN = """\
diversity: metric, [metrics.NAME]
  Diversity of texts in percent: distinct-1 and
  -2, share of unique texts, self-BLEU.
  From mmgen-framework VERSION.

  This part has no keys.

captioneval: metric, [metrics.NAME]
  BLEU-1 to 4, ROUGE-L, METEOR 1.5 and CIDEr-D,
  times 100, by pycocoevalcap; one text against
  all its targets.
  From mmgen-framework VERSION.

  tokenizer = "auto"    "auto", "java", "own"
      "java": Stanford's; "own": ours, without
      Java; "auto": Stanford's if Java is
      installed
  meteor = true         true or false
      also METEOR, which needs Java, up to 2 GB of
      memory and some seconds to start
  timeout = 120.0       number, over 0
      seconds to wait for an answer from Java

"""
