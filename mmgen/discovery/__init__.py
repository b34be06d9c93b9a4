"""How plugins are found and imported, and how one that fails is recorded."""
