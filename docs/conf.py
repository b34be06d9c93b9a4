"""The documentation site: `python -m sphinx -W docs site`, with mmgen-framework[docs]. It reads offline, from
site/index.html."""

import sys
from pathlib import Path

import mmgen

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project, author, version, release = "mmgen", "", mmgen.__version__, mmgen.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "pages", "docstrings"]
exclude_patterns = ["_ext"]

myst_heading_anchors = 4
smartquotes = False
autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "show-inheritance": True,
    "exclude-members": "model_config, model_post_init",
}
autodoc_preserve_defaults = True
add_module_names = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"mmgen {mmgen.__version__}"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_show_sourcelink = html_copy_source = html_show_copyright = False
pygments_style, pygments_dark_style = "friendly", "monokai"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#24303f", "color-brand-content": "#b3470f"},
    "dark_css_variables": {"color-brand-primary": "#f0c8a8", "color-brand-content": "#f0a070"},
}
