"""Reading: published formats. One message names all missing files; an error names the file and the line."""
