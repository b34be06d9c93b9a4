"""Storage: what lies on the disk: weights, generations, a run's folder, its environment."""
