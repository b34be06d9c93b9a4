"""`mmgen probe`."""

from kit import toys


def test_a_folder_without_a_run(tmp_path):
    done = toys.mmgen_here(tmp_path, "probe", "nowhere")
    assert (done.returncode, done.stderr) == (
        1,
        "error: nowhere: no recipe.json in this folder; name a run folder (runs/<name>/<profile>/seed-<n>)\n",
    )
