"""Docstrings, which are Markdown in spirit, for sphinx: code in single quotes, and what is aligned by hand as it
stands.

The fields of a class come with the comments that their lines have in the source (shapes are told there), suites with
the names of their tests.
"""

import inspect
import re

ALIGNED = re.compile(r"\w(?:[\w, ]*\S)? {2,}\S")  # name   what it is
FIELD = re.compile(r"    [a-z]\w*: .*")


def setup(app) -> dict:
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True}


def process(app, what, name, obj, options, lines: list[str]) -> None:
    text = rst("\n".join(lines))
    if inspect.isclass(obj) and obj.__module__.startswith("mmgen"):
        fields, checks = own_fields(obj), [name for name in vars(obj) if name.startswith("test_")]
        text += "\n\n" + literal(fields, "python") if fields else ""
        text += "\n\nChecks: " + ", ".join(f"``{name}``" for name in checks) + "." if checks else ""
    lines[:] = text.splitlines()


def own_fields(cls: type) -> str:
    """The lines of a class that say what its fields are."""
    source = inspect.getsource(cls).splitlines()
    return "\n".join(line[4:] for line in source if FIELD.fullmatch(line))


def rst(text: str) -> str:
    """Paragraphs of Markdown as reStructuredText."""
    paragraphs = re.split(r"\n[ \t]*\n", text.strip())
    return "\n\n".join(literal(one) if stands(one) else prose(one) for one in blocks(paragraphs))


def blocks(paragraphs: list[str]) -> list[str]:
    """What is indented goes on over empty lines."""
    made: list[str] = []
    for paragraph in filter(None, paragraphs):
        if made and made[-1].startswith("    ") and paragraph.startswith("    "):
            made[-1] += f"\n\n{paragraph}"
        else:
            made.append(paragraph)
    return made


def stands(paragraph: str) -> bool:
    """Is it indented, or aligned by hand?"""
    lines = paragraph.splitlines()
    return all(line.startswith("    ") for line in lines if line) or bool(
        ALIGNED.match(lines[0]) and all(ALIGNED.match(line) or line.startswith("  ") for line in lines)
    )


def literal(paragraph: str, language: str = "text") -> str:
    return f".. code-block:: {language}\n\n{indented(paragraph)}"


def indented(paragraph: str) -> str:
    lines = paragraph.splitlines()
    least = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(f"    {line[least:]}".rstrip() for line in lines)


def prose(paragraph: str) -> str:
    """`code` becomes ``code``, and what would be markup is none."""
    pieces = re.split(r"(`[^`]+`)", paragraph)
    text = ""
    for number, piece in enumerate(pieces):
        plain = re.sub(r"([\\*|_])", r"\\\1", piece)
        ends = "\\ " if number and piece[:1].isalnum() else ""  # code that a letter follows ends there all the same
        text += f"``{piece[1:-1]}``" if number % 2 else ends + plain
    return text
