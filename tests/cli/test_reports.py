"""`mmgen report` and `mmgen compare`."""

from kit import toys


def test_a_report_of_a_folder_without_a_run(tmp_path):
    done = toys.mmgen_here(tmp_path, "report", "nowhere")
    assert (done.returncode, done.stderr) == (
        1,
        "error: nowhere: no recipe.json in this folder; name a run folder (runs/<name>/<profile>/seed-<n>)\n",
    )


def test_a_comparison_with_a_folder_without_a_run(tmp_path):
    done = toys.mmgen_here(tmp_path, "compare", "nowhere", "there")
    assert (done.returncode, done.stderr) == (
        1,
        "error: nowhere: not a run; give a run's folder (runs/<name>/<profile>/seed-<n>) or the folder that contains "
        "its seeds\n",
    )
