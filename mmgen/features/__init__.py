"""Features: everything between an image file and (R, D)."""
