"""A service under load: `mmgen serve` in its own process, with and without batches, asked by 1, 8 and 32 clients."""

from __future__ import annotations

import base64
import json
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image

from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.run import run
from tools.load import memory, send, serving

from .exports import RECIPE
from .synthetic import Arguments, arguments, heads, tell

CLIENTS = (1, 8, 32)


def measure(chosen: Arguments, folder: Path) -> dict[str, Any]:
    """Answers a second and times to an answer, for each size of batch and each number of clients."""
    sizes = {"layers": chosen.layers, "width": chosen.width, "heads": heads(chosen.width), "epochs": 1}
    sizes |= {"images": chosen.images, "written": 2, "folder": folder}
    (folder / "served.toml").write_text(RECIPE.format(**sizes), encoding="utf-8")
    trained = run(load(folder / "served.toml", installed())[0]).path
    return {str(batch): loads(trained, chosen.device, batch, chosen.requests) for batch in (1, 32)}


def loads(trained: Path, device: str, batch: int, requests: int) -> dict[str, Any]:
    """Serve a run, and send `requests` requests from each number of clients."""
    with serving([str(trained), "--device", device, "--batch", str(batch)]) as (address, pid):
        send(address, request(), 1, 3)  # warm up
        results = {str(clients): summary(address, clients, requests) for clients in CLIENTS}
        return {"clients": results, "memory": memory(pid)}


def summary(address: str, clients: int, requests: int) -> dict[str, float]:
    load = send(address, request(), clients, requests)
    lost = requests - len(load.seconds)
    return {"rate": load.rate, "median": load.percentile(50), "high": load.percentile(95), "lost": lost}


def request() -> bytes:
    """The body of a request about a photo-sized picture."""
    file = BytesIO()
    Image.linear_gradient("L").resize((640, 480)).convert("RGB").save(file, "JPEG")
    picture = base64.b64encode(file.getvalue()).decode()
    return json.dumps({"inputs": {"image": picture, "caption": "a red dog near two trees"}}).encode()


def _more(parser) -> None:
    parser.add_argument("--images", type=int, default=128)
    parser.add_argument("--requests", type=int, default=512)


if __name__ == "__main__":
    options = arguments(__doc__, _more)
    with TemporaryDirectory() as temporary:
        tell(measure(options, Path(temporary)))
