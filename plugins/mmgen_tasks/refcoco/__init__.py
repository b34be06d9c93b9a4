"""The task of referring expressions (RefCOCO, RefCOCO+, RefCOCOg): which box an expression refers to."""
