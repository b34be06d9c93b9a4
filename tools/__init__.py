"""Tools to run by hand from the root of a checkout, such as `python -m tools.kills`; their docstrings say how."""
