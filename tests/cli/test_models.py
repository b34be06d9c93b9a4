"""`mmgen export`, `mmgen push` and `mmgen info`."""

from kit import toys


def test_folders_without_a_model(tmp_path):
    for arguments in (("export", "nowhere", "out"), ("info", "nowhere")):
        done = toys.mmgen_here(tmp_path, *arguments)
        assert (done.returncode, done.stderr) == (
            1,
            "error: nowhere: no recipe.json in this folder; name a run folder (runs/<name>/<profile>/seed-<n>)\n",
        )
    pushed = toys.mmgen_here(tmp_path, "push", "nowhere", "hf:me/toy")
    assert (pushed.returncode, pushed.stderr) == (
        1,
        "error: nowhere: not an export; write one with `mmgen export RUN FOLDER`\n",
    )
