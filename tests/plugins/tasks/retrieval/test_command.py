"""`mmgen find`: the most similar pictures for a text, and texts for a picture."""

import json

import pytest
from click.testing import CliRunner
from mmgen_tasks.retrieval.command import find
from mmgen_tasks.retrieval.index import VectorIndex

from mmgen.inference.load import load_run
from mmgen.inference.query import read_sources

QUERY = "a red ball"
pytestmark = pytest.mark.slow


def test_the_command_finds_pictures_for_a_text_and_texts_for_a_picture(trained, shared, tmp_path):
    index = VectorIndex(load_run(trained, "contrast"))
    index.add(read_sources([shared / "photos"]))
    expected = [f"{similarity:7.4f}  {id_}" for id_, similarity in index.rank({"caption": QUERY})]
    arguments = [str(trained), str(shared / "photos"), "--input", f"caption={QUERY}", "--index", str(tmp_path / "v")]
    first, second = (CliRunner().invoke(find, [*arguments, "--n", "2"]) for _ in range(2))
    assert first.exit_code == 0 and first.stdout.splitlines() == second.stdout.splitlines() == expected[:2]
    assert f"{tmp_path / 'v'}: 3 vectors, 3 of them new" in first.stderr and "3 vectors, 0 of them new" in second.stderr
    lines = [json.dumps({"id": text, "caption": text}) for text in ("a red ball", "the dog")]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines))
    result = CliRunner().invoke(
        find, [str(trained), str(tmp_path / "texts.jsonl"), "--input", f"image={shared / 'photos/0.png'}"]
    )
    assert result.exit_code == 0 and sorted(line[9:] for line in result.stdout.splitlines()) == [
        "a red ball",
        "the dog",
    ]
    result = CliRunner().invoke(find, [str(trained), str(shared / "photos")])
    assert str(result.exception) == (
        'give what to search, and the query: mmgen find RUN photos/ --input caption="a red ball"'
    )


def test_a_link_as_index_is_refused_under_its_option(trained, shared, tmp_path):
    (tmp_path / "v").symlink_to("v")
    arguments = [str(trained), str(shared / "photos"), "--input", f"caption={QUERY}", "--index", str(tmp_path / "v")]
    error = CliRunner().invoke(find, arguments).exception
    assert str(error) == f"--index {tmp_path / 'v'}: is a link to v, which would be replaced; choose another name"
