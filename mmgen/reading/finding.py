"""Where the files of a data set lie; what is not there is told in one message that says how to get it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..errors import DataError


class Finder:
    """Looks for the files of a data set, and remembers what is not there until `finish`.

    name    of the data set, for the message
    folder  where they lie, as they come out of the published archives
    below   subfolders of it where a file may lie as well, as COCO's archive has `annotations`
    """

    def __init__(self, name: str, folder: Path, below: Sequence[str] = ("annotations",)) -> None:
        self.name, self.folder, self.below = name, folder, below
        self._missing: dict[Path, str] = {}  # file -> where it is to be had
        self._no_folders: dict[Path, str] = {}  # folder -> what is to be done

    def file(self, names: Iterable[Path | str], where: str) -> Path:
        """The first of these that is there, also gzipped; else the first name. `where`: how it is to be had."""
        known = [Path(name) for name in names]
        for candidate in self._candidates(known):
            if candidate.is_file():
                return candidate
        expected = self.folder / known[0]
        self._missing[expected] = where
        return expected

    def subfolder(self, path: Path | str, advice: str) -> Path:
        """A folder. `advice`: what is to be done where there is none."""
        found = self.folder / path
        if not found.is_dir():
            self._no_folders[found] = advice
        return found

    def finish(self, advice: str) -> None:
        """Raises one DataError with everything that was not there. `advice`: what is to be done about files."""
        lines = []
        if self._missing:
            count = f"{len(self._missing)} files are" if len(self._missing) > 1 else "a file is"
            lines = [f"{self.name}: {count} missing:"]
            lines += [f"  {path}  <- {where}" if where else f"  {path}" for path, where in self._missing.items()]
            lines.append(f"  {advice}")
        for path, what in self._no_folders.items():
            lines.append(f"{self.name}: {path}: {'is no folder' if path.exists() else 'no such folder'}; {what}")
        if lines:
            raise DataError("\n".join(lines))

    def _candidates(self, names: Iterable[Path]) -> Iterator[Path]:
        for name in names:
            for place in (self.folder / name, *(self.folder / below / name.name for below in self.below)):
                yield from (place, place.with_name(f"{place.name}.gz"))
