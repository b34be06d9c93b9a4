"""Reports of a run: the table (table.md and in the terminal) and the page report.html."""

from .compare import compare
from .page import SHOWN_EXAMPLES, try_page, write_page
from .rendering import StepRenderer, step_renderer
from .samples import samples
from .table import average_seeds, gather_tables, markdown, tables_of_scores, with_remarks, write_tables

__all__ = [
    "SHOWN_EXAMPLES",
    "StepRenderer",
    "average_seeds",
    "compare",
    "gather_tables",
    "markdown",
    "samples",
    "step_renderer",
    "tables_of_scores",
    "try_page",
    "with_remarks",
    "write_page",
    "write_tables",
]
