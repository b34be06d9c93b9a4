"""Reports of a run: the table (table.md and in the terminal) and the page report.html."""

from .compare import compare, compare_rows
from .page import SHOWN_EXAMPLES, try_page, write_page
from .rendering import samples, step_renderer
from .table import gather_tables, tables_with_seeds, write_tables

__all__ = [
    "SHOWN_EXAMPLES",
    "compare",
    "compare_rows",
    "gather_tables",
    "samples",
    "step_renderer",
    "tables_with_seeds",
    "try_page",
    "write_page",
    "write_tables",
]
