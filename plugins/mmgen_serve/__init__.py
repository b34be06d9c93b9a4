"""The config of the command `mmgen serve`: a model behind a URL. docs/guides/deploy.md describes it."""

from typing import ClassVar, Literal

import mmgen


class Serve(mmgen.CommandConfig):
    """Serve a trained model over HTTP, with a page to try it."""

    type: Literal["serve"] = "serve"
    group: ClassVar[str] = "Use a trained run"

    def build(self):
        from .command import serve

        return serve


@mmgen.hookimpl
def register_commands():
    return [Serve]
