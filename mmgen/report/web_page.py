"""Self-contained HTML pages: a template inside the frame that all pages of mmgen share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

FRAME_PACKAGE = "mmgen.report"  # has the frame, the colours and the fonts of every page


def render(package: str, name: str, context: Mapping[str, Any], styles: Sequence[tuple[str, str]] = ()) -> str:
    """Render `web/NAME.html` of a package with its `NAME.css` and `NAME.js` as one page. All texts of people and models
    are escaped. `styles`: (package, file) of style sheets that come before `NAME.css`."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def web_file(package: str, file: str) -> Markup:
        return Markup(files(package).joinpath("web", file).read_text(encoding="utf-8"))

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name, "web") for name in dict.fromkeys((package, FRAME_PACKAGE))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = lambda share: "<1\u202f%" if 0 < share < 1 else f"{share:.0f}\u202f%"
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    css = [web_file(*style) for style in (*styles, (package, f"{name}.css"))]
    template = environment.get_template(f"{name}.html")
    return template.render(**context, css=Markup("").join(css), js=web_file(package, f"{name}.js"))
