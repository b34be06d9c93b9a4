"""Finds the published files of a data set in its folders. One message lists all missing ones and how to get them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mmgen.errors import DataError


class Finder:
    """Looks for the files of a data set and collects the missing ones until `finish`.

    name    of the data set, for the message
    folder  with the files as the published archives unpack
    below   subfolders that may hold a file too, such as `annotations` in COCO's archive
    """

    def __init__(self, name: str, folder: Path, below: Sequence[str] = ("annotations",)) -> None:
        self.name, self.folder, self.below = name, folder, below
        self._missing: dict[Path, str] = {}  # file -> where to get it
        self._missing_folders: dict[Path, str] = {}  # folder -> what to do

    def file(self, names: Iterable[Path | str], where: str) -> Path:
        """The first of these names that exists, gzipped or not; else the first name. `where`: where to get the file."""
        paths = [Path(name) for name in names]
        for candidate in self._candidate_paths(paths):
            if candidate.is_file():
                return candidate
        expected = self.folder / paths[0]
        self._missing[expected] = where
        return expected

    def subfolder(self, path: Path | str, advice: str) -> Path:
        """A folder. `advice`: what to do if the folder is missing."""
        folder = self.folder / path
        if not folder.is_dir():
            self._missing_folders[folder] = advice
        return folder

    def finish(self, advice: str) -> None:
        """Raises one DataError that lists all missing files and folders. `advice`: what to do about the files."""
        lines = []
        if self._missing:
            count = f"{len(self._missing)} files are" if len(self._missing) > 1 else "a file is"
            lines = [f"{self.name}: {count} missing:"]
            lines += [f"  {path}  <- {where}" if where else f"  {path}" for path, where in self._missing.items()]
            lines.append(f"  {advice}")
        for path, remedy in self._missing_folders.items():
            lines.append(f"{self.name}: {path}: {'is not a folder' if path.exists() else 'no such folder'}; {remedy}")
        if lines:
            raise DataError("\n".join(lines))

    def _candidate_paths(self, names: Iterable[Path]) -> Iterator[Path]:
        for name in names:
            for path in (self.folder / name, *(self.folder / below / name.name for below in self.below)):
                yield from (path, path.with_name(f"{path.name}.gz"))
