"""What jobs are made of, and how steps name the documentation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

ROOT = Path(__file__).resolve().parents[2]
FAILED = re.compile(r"Traceback \(most recent call last\)|^error:.*$", re.MULTILINE)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Shell:
    """A command. `names`: what stands in the page -> what it is here (RUN -> a run). `served`: the command runs while
    the commands after it do, until the job ends. `small`: settings that make it tiny, besides those of the job.
    `shows`: texts that its output must have."""

    command: str
    page: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    served: bool = False
    small: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()

    def text(self) -> str:
        command = self.command
        for name, value in self.names.items():
            command = command.replace(name, value)
        return command

    def stale_names(self) -> list[str]:
        """The names that replace nothing."""
        command, stale = self.command, []
        for name, value in self.names.items():
            stale += [name] if name not in command else []
            command = command.replace(name, value)
        return stale

    def in_page(self) -> bool:
        return self.command in (ROOT / self.page).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Code:
    """Python code: `content`, then the block of a page that has the line `line`, or all blocks of Python of the page
    in their order if `line` is ALL. Prompts (>>>) and what a page shows as printed are left out. `shows`: texts that
    its output must have."""

    line: str = ""
    page: str = ""
    content: str = ""
    shows: tuple[str, ...] = ()
    ALL: ClassVar[str] = "*"

    def text(self) -> str:
        return self.content + self._blocks() if self.page else self.content

    def in_page(self) -> bool:
        return bool(self._blocks())

    def _blocks(self) -> str:
        if self.line == self.ALL:
            page = (ROOT / self.page).read_text(encoding="utf-8")
            return "".join(code for language, code in BLOCK.findall(page) if language == "python")
        block = block_with(self.page, self.line)
        return from_prompts(block) if block.startswith(">>> ") else block


@dataclass(frozen=True)
class File:
    """A file in `folder`: the block of a page that begins with its path as a comment, which a JSONL file does not have,
    or the text `content`."""

    path: str
    page: str = ""
    content: str = ""
    folder: str = ""

    def text(self) -> str:
        block = block_with(self.page, f"# {self.path}") if self.page else self.content
        return block.removeprefix(f"# {self.path}\n") if self.path.endswith(".jsonl") else block

    def in_page(self) -> bool:
        return bool(block_with(self.page, f"# {self.path}"))


@dataclass(frozen=True)
class Job:
    """A job. `small`: settings that make its `mmgen run`s tiny. `detours`: what stood in the way of the first who did
    it. `needs`: the names of the jobs whose results it uses. `makes`: the packages
    that it makes; what an attempt that failed has left of them is removed, since `mmgen plugin new` refuses them."""

    name: str
    steps: tuple[Shell | Code | File, ...]
    detours: tuple[str, ...] = ()
    small: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()


def missing(step: Shell | Code, output: str) -> str:
    """What is wrong with the output of a step that ended with status 0; empty if nothing is."""
    if failed := FAILED.search(output):
        return f"its output has {failed[0]!r}, but its status is 0"
    absent = [text for text in step.shows if text not in output]
    return f"its output does not have {', '.join(map(repr, absent))}" if absent else ""


def block_with(page: str, line: str) -> str:
    """The first block of code of a page that has this line; empty if none has."""
    blocks = (code for _, code in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")))
    return next((code for code in blocks if line in code.splitlines()), "")


def from_prompts(block: str) -> str:
    """The code of a session with prompts."""
    lines = [line[4:] for line in block.splitlines() if line[:4] in (">>> ", "... ")]
    return "".join(f"{line}\n" for line in lines)


FEW = (
    "data.train_size=32",
    "data.val_size=4",
    "data.test_size=8",
    "data.image_size=64",
    "training.epochs=1",
)
TINY = (*FEW, "backbone.num_hidden_layers=1", "backbone.hidden_size=32", "backbone.num_attention_heads=2")
