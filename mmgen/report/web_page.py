"""One page that carries everything inside it: a template in the frame that the house's pages share."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

HOUSE = "mmgen.report"  # has the frame, and the colours and type of every page


def render(package: str, name: str, context: Mapping[str, Any], styles: Sequence[tuple[str, str]] = ()) -> str:
    """`web/NAME.html` of a package, with `NAME.css` and `NAME.js` from beside it, as one page. Everything that people
    or models wrote is escaped. `styles`: (package, file) of style sheets that come before its own."""
    from markupsafe import Markup

    def own(package: str, file: str) -> Markup:
        return Markup(files(package).joinpath("web", file).read_text(encoding="utf-8"))

    css = [own(*style) for style in (*styles, (package, f"{name}.css"))]
    template = _environment(package).get_template(f"{name}.html")
    return template.render(**context, css=Markup("").join(css), js=own(package, f"{name}.js"))


@functools.cache
def _environment(package: str) -> Environment:
    """With the templates that it has compiled, which takes a fifth of the time of a page."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name, "web") for name in dict.fromkeys((package, HOUSE))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = lambda share: "<1\u202f%" if 0 < share < 1 else f"{share:.0f}\u202f%"
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment
