"""`mmgen features`."""

from kit import toys


def test_features_that_are_not_there(tmp_path):
    done = toys.mmgen_here(tmp_path, "features", "info", "nowhere.h5")
    assert (done.returncode, done.stderr) == (
        1,
        "error: nowhere.h5: no features; create them with `mmgen features extract` or `mmgen features import`\n",
    )


def test_published_features_are_imported(tmp_path):
    done = toys.mmgen_here(tmp_path, "features", "extract", "nowhere", "out.h5", "--type", "bottom_up_tsv")
    assert (done.returncode, done.stderr) == (
        1,
        "error: --type bottom_up_tsv: reads published files; use `mmgen features import`\n",
    )
