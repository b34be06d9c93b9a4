"""Reports of a run: the table (table.md and in the terminal) and the page report.html."""

from .compare import check_file, compare, compare_rows, write
from .page import SHOWN_EXAMPLES, try_page, write_page
from .rendering import StepRenderer, step_renderer
from .samples import samples
from .table import average_seeds, gather_tables, tables_of_scores, with_remarks, write_tables

__all__ = [
    "SHOWN_EXAMPLES",
    "StepRenderer",
    "average_seeds",
    "check_file",
    "compare",
    "compare_rows",
    "gather_tables",
    "samples",
    "step_renderer",
    "tables_of_scores",
    "try_page",
    "with_remarks",
    "write",
    "write_page",
    "write_tables",
]
