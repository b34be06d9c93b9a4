"""The documentation site: `python -m sphinx -W docs site`, with mmgen-framework[docs]. It reads offline, from
site/index.html."""

import sys
from pathlib import Path

import mmgen

sys.path.append(str(Path(__file__).parent / "_ext"))

project, author, version, release = "mmgen", "", mmgen.__version__, mmgen.__version__
extensions = ["myst_parser", "reference"]  # reference: docs/_ext/reference.py

myst_heading_anchors = 4
smartquotes = False
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
