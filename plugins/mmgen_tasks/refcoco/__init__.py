"""RefCOCO, RefCOCO+ and RefCOCOg: which box an expression refers to."""
