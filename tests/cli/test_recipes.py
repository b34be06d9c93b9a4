"""Commands about recipes that need no run: init, check and show."""

from kit import toys


def test_init_copies_recipes_and_overwrites_none(tmp_path):
    first = toys.mmgen_here(tmp_path, "init")
    assert first.returncode == 0 and "recipes/bertgen_vqa.toml" in first.stdout.splitlines()
    (tmp_path / "recipes/bertgen_vqa.toml").write_text("changed")
    again = toys.mmgen_here(tmp_path, "init")
    assert "recipes/bertgen_vqa.toml: already exists; skipped" in again.stdout.splitlines()
    assert (tmp_path / "recipes/bertgen_vqa.toml").read_text() == "changed"


def test_check_counts_profiles_and_lists_every_mistake(tmp_path):
    (tmp_path / "good.toml").write_text(toys.recipe())
    done = toys.mmgen_here(tmp_path, "check", "good.toml")
    assert done.returncode == 0 and done.stdout == "1 configuration in 1 recipe: no errors\n", done.stderr
    (tmp_path / "bad.toml").write_text(toys.recipe(training={"epoch": 3}))
    done = toys.mmgen_here(tmp_path, "check", "good.toml", "bad.toml", "missing.toml")
    assert done.returncode == 1 and "bad.toml:" in done.stderr and "missing.toml" in done.stderr


def test_check_reads_a_recipe_without_a_profile_too(tmp_path):
    long = "\n[profiles.long.training]\nlearning_rate = 1e-3\n"
    (tmp_path / "good.toml").write_text(toys.recipe() + long)
    (tmp_path / "bad.toml").write_text(toys.recipe(training={"learning_rate": "x"}) + long)
    (tmp_path / "named.toml").write_text('profile = "long"\n' + (tmp_path / "bad.toml").read_text())
    assert toys.mmgen_here(tmp_path, "check", "good.toml").stdout == "2 configurations in 1 recipe: no errors\n"
    bad = toys.mmgen_here(tmp_path, "check", "bad.toml")
    assert bad.returncode == 1 and "training.learning_rate" in bad.stderr
    assert toys.mmgen_here(tmp_path, "check", "named.toml").stdout == "1 configuration in 1 recipe: no errors\n"


def test_check_names_the_profiles_that_have_a_mistake(tmp_path):
    wrong = "\n[profiles.{}.training]\nepoch = 3\n"
    (tmp_path / "toy.toml").write_text(toys.recipe() + "".join(map(wrong.format, ("long", "longer"))))
    lines = toys.mmgen_here(tmp_path, "check", "toy.toml").stderr.splitlines()
    assert [line.rpartition("?")[2] for line in lines] == [" (profile long)", " (profile longer)"]
    (tmp_path / "toy.toml").write_text(toys.recipe(training={"epochs": 0}) + "[profiles.a]\n[profiles.b]\n")
    (line,) = toys.mmgen_here(tmp_path, "check", "toy.toml").stderr.splitlines()
    assert "profile" not in line  # it is a mistake of all
    (tmp_path / "toy.toml").write_text(
        toys.recipe(training={"epochs": 0}) + "[profiles.a.training]\nepochs = 1\n[profiles.b]\n[profiles.c]\n"
    )
    (line,) = toys.mmgen_here(tmp_path, "check", "toy.toml").stderr.splitlines()
    assert line.endswith(" (without a profile and profiles b, c)")


def test_show_has_the_origin_of_a_value(tmp_path):
    (tmp_path / "toy.toml").write_text(toys.recipe())
    done = toys.mmgen_here(tmp_path, "show", "toy.toml", "--set", "training.epochs=7")
    line = next(line for line in done.stdout.splitlines() if line.startswith("epochs = 7"))
    assert line.endswith("# --set training.epochs=7") and done.returncode == 0
