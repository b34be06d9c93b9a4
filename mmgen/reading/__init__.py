"""Reading: published formats. An error names the file and the line."""
