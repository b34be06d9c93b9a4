"""Reports of a run: the table (table.md and in the terminal) and the page report.html."""

from .compare import compare
from .page import SHOWN_EXAMPLES, try_page, write_page
from .rendering import StepRenderer, step_renderer
from .samples import prediction_samples, text_samples
from .table import average_seeds, gather_tables, markdown, remarks, tables_of_scores, write_tables

__all__ = [
    "SHOWN_EXAMPLES",
    "StepRenderer",
    "average_seeds",
    "compare",
    "gather_tables",
    "markdown",
    "prediction_samples",
    "remarks",
    "step_renderer",
    "tables_of_scores",
    "text_samples",
    "try_page",
    "write_page",
    "write_tables",
]
