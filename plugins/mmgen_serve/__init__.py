"""The config of the command `mmgen serve`: a model behind a URL. docs/serving.md describes it."""

from typing import ClassVar, Literal

import mmgen
from mmgen.errors import MmgenError, install_extra


class Serve(mmgen.CommandConfig):
    """Serve a trained model over HTTP, with a page to try it."""

    type: Literal["serve"] = "serve"
    group: ClassVar[str] = "Use a trained run"

    def build(self):
        try:
            from .command import serve
        except ImportError as error:
            raise MmgenError(f"mmgen serve needs {error.name}; {install_extra('serve')}") from None
        return serve


@mmgen.hookimpl
def register_commands():
    return [Serve]
