"""Reading: files that others wrote, found or asked for in one message, and refused by file and line."""
