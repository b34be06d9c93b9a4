"""What a run shows: the table (table.md, and in the terminal), and a page with everything (report.html)."""

from .compare import compare
from .page import SHOWN, try_page, write_page
from .rendering import StepRenderer, step_renderer
from .samples import answered, samples
from .table import gather_all, markdown, of_scores, over_seeds, remarks, write_tables

__all__ = [
    "SHOWN",
    "StepRenderer",
    "answered",
    "compare",
    "gather_all",
    "markdown",
    "of_scores",
    "over_seeds",
    "remarks",
    "samples",
    "step_renderer",
    "try_page",
    "write_page",
    "write_tables",
]
