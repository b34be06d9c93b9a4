"""Fetching published sets: the command data get, and what a run asks before it fetches."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..commands import PATH, goes_on, yes_option
from ..errors import MmgenError
from ..progress import Bars, tell

if TYPE_CHECKING:
    from ..downloads.get import Request
    from ..downloads.hub import Network


@click.command()
@click.argument("name", required=False)
@click.argument("folder", type=PATH, required=False)
@click.option("--images", is_flag=True, help="Also its pictures.")
@click.option("--limit", type=click.IntRange(1), help="Only N of its pictures, the same for everybody.", metavar="N")
@click.option("--leave-out-missing", is_flag=True, help="Fetch nothing; runs go on without the missing pictures.")
@click.option("--dry-run", is_flag=True, help="Only list files, MB and licences; without NAME, of all sets.")
@yes_option
@goes_on("what has arrived is kept; run the same command again to continue")
def get(
    name: str | None,
    folder: Path | None,
    images: bool,
    limit: int | None,
    leave_out_missing: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Fetch the published set NAME into FOLDER, by default where recipes look for it.

    Pictures are in its subfolder images, with --limit N in images-N. A stopped download continues when the same command
    runs again. Licences, and what was fetched from where, are recorded in downloads.json."""
    from ..downloads.get import Request
    from ..downloads.sources import published_set, published_sets

    if not (name or dry_run):
        raise MmgenError(f"name a set: {', '.join(published_sets())}")
    pictures = Path(f"images-{limit}") if limit else Path("images") if images or not name else None
    sets = {name: published_set(name)} if name else published_sets()
    requests = [
        Request(name, folder or Path(source.folder or f"data/{name}"), pictures, source=source)
        for name, source in sets.items()
    ]
    if name and leave_out_missing:
        requests[0].leave_out_missing()
    else:
        ask_and_fetch(requests, yes, dry_run)


def ask_and_fetch(
    requests: Sequence[Request], yes: bool, dry_run: bool = False, networks: Sequence[Network] = ()
) -> None:
    """Say what would be fetched; fetch it if a person says so, or with `yes`. Raises MmgenError without either."""
    from ..downloads.get import fetch

    missing = [(request, request.missing()) for request in requests]
    about = [network.describe() for network in networks]
    tell("\n".join([*(request.describe(rows) for request, rows in missing), *(line for line, _ in about)]))
    requests = [request for request, rows in missing if rows]
    if not (requests or networks):
        return
    sizes = [size for _, rows in missing for _, size, _ in rows] + [size for _, size in about]
    tell(f"{sum(filter(None, sizes)) / 1e6:,.1f} MB in all{', and files of unknown size' * (None in sizes)}")
    if dry_run:
        return
    if not yes:
        if not sys.stdin.isatty():
            raise MmgenError("add --yes to accept these licences and to fetch these files")
        click.confirm("accept these licences, and fetch these files?", abort=True)
    for request in requests:
        fetch(request, Bars())
    for network in networks:
        network.fetch()
