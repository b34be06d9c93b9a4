"""Data: examples to batches. Everything is a function of (seed, step, epoch, update), without sampler state."""
