"""Licences of networks' weights: in fingerprints of features, and in the metadata beside weights from a hub."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

LICENSE = "license"  # key of the licence of a network's weights; stores made by older versions lack it
UNKNOWN = "unknown"  # licence of weights whose publisher names none


def licenses(fingerprint: Any) -> str | None:
    """The licences of the networks that made features, with the networks' names; None if there are none."""
    if not isinstance(fingerprint, Mapping):
        return None
    local = f"{fingerprint[LICENSE]} ({fingerprint.get('model', 'network')})" if fingerprint.get(LICENSE) else None
    texts = [local, *map(licenses, fingerprint.values())]
    return ", ".join(dict.fromkeys(text for text in texts if text)) or None


def hub_license(source: str) -> str | None:
    """The licence of pretrained weights, by the metadata of the README.md beside them or in the hub's cache; None if
    it is not known. `source`: a folder or a hub name."""
    from huggingface_hub import metadata_load, try_to_load_from_cache

    try:
        card = Path(source) / "README.md" if Path(source).is_dir() else try_to_load_from_cache(source, "README.md")
        license = (metadata_load(card) or {}).get("license") if isinstance(card, str | Path) else None
    except Exception:  # no such file, or the card of a stranger
        return None
    return license if isinstance(license, str) else None
