"""Settings of torch, which a model makes when it is composed."""

import torch
from kit import toys


def test_attention_on_a_gpu_runs_without_cudnn_and_convolutions_without_tf32():
    """cuDNN prepares for every new shape, and rounds the rate of dropout."""
    torch.backends.cuda.enable_cudnn_sdp(True)
    torch.backends.cudnn.allow_tf32 = True
    toys.pictured()
    assert not torch.backends.cuda.cudnn_sdp_enabled() and not torch.backends.cudnn.allow_tf32
    assert torch.backends.cuda.flash_sdp_enabled() and torch.backends.cuda.mem_efficient_sdp_enabled()
