"""What a run shows: the table (table.md, and in the terminal), and a page with everything (report.html)."""

from .page import SHOWN, try_page, write_page
from .table import samples, table, write_table

__all__ = ["SHOWN", "samples", "table", "try_page", "write_page", "write_table"]
