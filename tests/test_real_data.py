"""Real data: broken pictures among good ones, and a run on them."""

import json

import pytest
from click.testing import CliRunner
from kit.toys import RECIPE
from PIL import Image

from mmgen.cli import main
from mmgen.features.store import FeatureStore

pytestmark = pytest.mark.slow

PICTURED = """\
[inputs.image]
type = "regions"
[inputs.image.extractor]
type = "roi"
image_size = 32
spread = 1
"""


def test_a_broken_picture_stops_a_run_before_training_and_mending_it_lets_it_go_on(tmp_path):
    for number in range(6):
        Image.new("RGB", (40, 30), (40 * number, 90, 20)).save(tmp_path / f"{number}.png")
    (tmp_path / "3.png").write_bytes(b"no picture")
    for split, numbers in (("train", (0, 1, 2, 3)), ("val", (4,)), ("test", (5,))):
        lines = [{"id": str(number), "image": f"{number}.png", "questions": ["what is it ?"]} for number in numbers]
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    head, _, _ = RECIPE.replace('[inputs.caption]\ntype = "text"\n', PICTURED).partition("[steps.second]")
    steps = head.replace('inputs = ["caption"]\ntrain = ["backbone"]', 'inputs = ["image"]\ntrain = ["image"]')
    (tmp_path / "toy.toml").write_text(f'{steps}[data]\ntype = "table"\nfolder = "{tmp_path}"\nimages = "."\n')
    command = ["run", str(tmp_path / "toy.toml"), "--set", f'output="{tmp_path / "runs"}"']
    for _ in range(2):  # the store is there the second time, and the picture is named all the same
        output = CliRunner().invoke(main, command, catch_exceptions=False).output
        assert f"image: skipped picture '3': {tmp_path}/3.png: not a readable image" in output
        assert "no features for 1 of 4 images (3)" in output and "learning" not in output
    Image.new("RGB", (40, 30)).save(tmp_path / "3.png")
    output = CliRunner().invoke(main, command, catch_exceptions=False).output
    assert "first: training" in output and "done in" in output
    (store,) = (tmp_path / "runs/toy/default/features").iterdir()
    assert sorted(FeatureStore(store)) == ["0", "1", "2", "3", "4", "5"]


def test_a_folder_to_write_questions_to_is_refused_before_any_is_asked(tmp_path):
    done = CliRunner().invoke(main, ["generate", str(tmp_path), "--caption", "x", "--out", str(tmp_path)])
    assert done.exit_code == 2 and f"Invalid value for '--out': File '{tmp_path}' is a directory." in done.output
