"""The task of finding pictures for captions and captions for pictures."""
