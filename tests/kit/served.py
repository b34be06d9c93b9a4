"""The service of a small model that reads pictures and captions, in this process."""

import base64
from contextlib import contextmanager
from io import BytesIO

from PIL import Image

import mmgen
from kit import small_runs
from kit.weights import perturbed
from mmgen.inference.predictor import Predictor

ADDRESS = "http://127.0.0.1:8000"


def picture(color: str = "red") -> bytes:
    """A picture as a PNG file. The color is the upper half; the lower one is black."""
    image = Image.new("RGB", (64, 64), color)
    image.paste("black", (0, 32, 64, 64))
    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def encoded(color: str = "red") -> str:
    return base64.b64encode(picture(color)).decode()


def predictor(generator: str = "masked") -> Predictor:
    """The predictor of a step that reads pictures and captions, with default options."""
    loaded = mmgen.load(small_runs.drawn("writes", generator), "both", device="cpu")
    perturbed(loaded.model)
    loaded.recipe = loaded.recipe.model_copy(update={"decoding": loaded.recipe.generator.decoding()})
    return loaded


@contextmanager
def client(served: Predictor, headers=None, **options):
    """A client of the service of a predictor, without a socket. `options`: see `create_app`."""
    from mmgen_serve.app import Service, create_app
    from starlette.testclient import TestClient

    app = create_app(Service(served), "served/both", **options)
    with TestClient(app, ADDRESS, headers=headers, raise_server_exceptions=False) as opened:
        yield opened
