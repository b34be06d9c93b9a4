"""`mmgen score`: files of predictions and references, of one system or two."""
