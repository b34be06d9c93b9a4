"""The config.json of published weights, where this machine has it. Without torch, and without a network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def published_config(name: str) -> dict[str, Any] | None:
    """What config.json of a folder, or of a hub name that was downloaded before, says; None if it is not here."""
    path = Path(name) / "config.json"
    if not path.is_file():
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError

        try:
            cached = try_to_load_from_cache(name, "config.json")
        except HFValidationError:
            return None
        if not isinstance(cached, str):
            return None
        path = Path(cached)
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # reported when the encoder is built
        return None
    return values if isinstance(values, dict) else None
