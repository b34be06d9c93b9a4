"""Recipes: TOML in, checked tables out. `load.load` reads one, `tables.Recipe` is what comes out."""
