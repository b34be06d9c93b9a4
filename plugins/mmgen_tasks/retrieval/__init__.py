"""Pictures for captions and captions for pictures: the metric and the card."""
