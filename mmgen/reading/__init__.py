"""Reading: published formats. Files that others wrote are asked for in one message, and refused by file and line."""
