"""The network of Visual Genome's Faster R-CNN: its boxes."""

import numpy as np
import pytest
import torch
from mmgen_extractors.visual_genome_network import apply_deltas


def test_a_shift_and_a_scale_of_a_box():
    moved = apply_deltas(
        torch.tensor([[1.0, 0.0, 5 * np.log(2), 99.0]]), torch.tensor([[0.0, 0.0, 10.0, 20.0]]), (10, 10, 5, 5)
    )
    assert moved[0, [0, 2]].tolist() == pytest.approx([-4.0, 16.0], abs=1e-4)
    assert (moved[0, 3] - moved[0, 1]).item() == pytest.approx(20 * 1000 / 16, rel=1e-4)
