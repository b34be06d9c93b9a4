"""What tests share: models and recipes of a few weights, files as they are published, processes that start quickly."""
