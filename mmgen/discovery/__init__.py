"""How plugins are found and imported, and what keeps a bad one from taking the process with it."""
