"""Training: a step learns, on any number of processes."""
