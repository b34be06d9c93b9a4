"""Train a step, on any number of processes."""
