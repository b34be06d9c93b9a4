"""What a run shows: the table (table.md, and in the terminal), and a page with everything (report.html)."""

from .compare import compare
from .page import SHOWN, try_page, write_page
from .samples import answered, corners, samples
from .table import gather_all, markdown, of_scores, over_seeds, remarks, write_tables

__all__ = [
    "SHOWN",
    "answered",
    "compare",
    "corners",
    "gather_all",
    "markdown",
    "of_scores",
    "over_seeds",
    "remarks",
    "samples",
    "try_page",
    "write_page",
    "write_tables",
]
