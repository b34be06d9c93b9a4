"""`mmgen data check` and `mmgen data export`."""

from kit import toys


def test_an_unknown_format(tmp_path):
    (tmp_path / "toy.toml").write_text(toys.RECIPE)
    done = toys.mmgen_here(tmp_path, "data", "export", "toy.toml", "out", "--as", "vqa")
    assert (done.returncode, done.stderr) == (
        1,
        "error: --as vqa: unknown format; did you mean 'vqa2'?; available: coco_captions, flickr30k, nlvr2, refcoco, "
        "vcr, vqa2, vqg\n",
    )


def test_data_are_shown(tmp_path):
    (tmp_path / "toy.toml").write_text(toys.RECIPE)
    done = toys.mmgen_here(tmp_path, "data", "check", "toy.toml")
    assert done.returncode == 0, done.stderr
    assert "train-00001\n" in done.stdout and "  -> " in done.stdout
