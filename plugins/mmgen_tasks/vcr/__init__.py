"""The task VCR: which of four answers is right, and which of four rationales."""
