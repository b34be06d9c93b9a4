"""Networks on the Hugging Face Hub: which a run has to download, what they weigh, and their revisions, which stay."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..files import cached_model, download_model, read_table, write_json, write_text


@dataclass(frozen=True)
class Network:
    """A network to download: "user/name", or "user/name@revision". A name without a revision stands for the one that
    was downloaded first: on this machine, and for everybody who has its `record`, the file `downloads.json`."""

    name: str
    recorded: str | None  # its revision, if an earlier download decided it
    record: Path

    def describe(self) -> tuple[str, int | None]:
        """A line with the revision and the licence, and the bytes, None if nobody can say it now."""
        from huggingface_hub import HfApi

        repository, _, revision = self.name.partition("@")
        line = f"{repository}: the network, from huggingface.co"
        with contextlib.suppress(Exception):  # the hub's client and the network raise errors of many kinds
            info = HfApi().model_info(repository, revision=revision or self.recorded, files_metadata=True, timeout=10)
            size = sum(file.size or 0 for file in info.siblings or () if file.rfilename == "model.safetensors")
            licence = getattr(info.card_data, "license", None)
            return f"{line}, revision {info.sha}: {size / 1e6:,.0f} MB, licence {licence}", size
        return f"{line}, which cannot be asked now", None

    def fetch(self) -> None:
        """Raises UnavailableError."""
        folder = Path(download_model(self.name, self.recorded))
        if "@" not in self.name:
            write_text(folder.parents[1] / "refs/main", folder.name)
            if self.record.exists():
                table = read_table(self.record)
                write_json(self.record, table | {"networks": table.get("networks", {}) | {self.name: folder.name}})


def missing_networks(names: Iterable[str], record: Path) -> list[Network]:
    """The networks that are not on this machine. `names`: folders, or names of the hub."""
    recorded = read_table(record).get("networks", {}) if record.exists() else {}
    return [
        Network(name, recorded.get(name), record)
        for name in names
        if (folder := cached_model(name)) != name and not (folder and folder.endswith(recorded.get(name, "")))
    ]
