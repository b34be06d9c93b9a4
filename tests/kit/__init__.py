"""Shared by tests: small models and recipes, files in published formats, processes that start quickly."""

COSTLY = (  # tests of the public suites that take a third of a second for every part
    "test_every_way_of_writing",
    "test_overfits_one_pair",
    "test_training_lowers_the_loss",
)
