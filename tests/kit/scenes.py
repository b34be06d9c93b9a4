"""A small data set of drawn scenes."""

from mmgen_scenes import Scenes

SMALL = Scenes(train_size=300, val_size=40, test_size=120)
