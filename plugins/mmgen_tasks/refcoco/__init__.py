"""RefCOCO, RefCOCO+ and RefCOCOg: which box an expression is about."""
