"""A Hugging Face Hub of local folders, and small networks that stand for published ones."""

import contextlib
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

NEWEST = "0123456789abcdef0123456789abcdef01234567"  # the commit of every repository


@contextlib.contextmanager
def local_hub(cache, repositories):
    """The hub has these repositories: name -> folder. What is downloaded goes to `cache`, which starts empty. Yields
    the names and revisions that were downloaded."""
    import huggingface_hub
    from huggingface_hub import constants

    downloaded = []

    def snapshot_download(repository, revision=None, **_):
        downloaded.append((repository, revision))
        model = cache / f"models--{repository.replace('/', '--')}"
        folder = model / "snapshots" / (revision or NEWEST)
        shutil.copytree(repositories[repository], folder, dirs_exist_ok=True)
        if revision is None:
            (model / "refs").mkdir(exist_ok=True)
            (model / "refs/main").write_text(NEWEST)
        return str(folder)

    def model_info(api, repository, revision=None, **_):
        weights = Path(repositories[repository], "model.safetensors")
        files = [SimpleNamespace(rfilename=weights.name, size=weights.stat().st_size)]
        return SimpleNamespace(sha=revision or NEWEST, siblings=files, card_data=SimpleNamespace(license="apache-2.0"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "HF_HUB_CACHE", str(cache))
        patch.setattr(constants, "HF_HUB_OFFLINE", False)
        patch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
        patch.setattr(huggingface_hub.HfApi, "model_info", model_info)
        yield downloaded


def timm_network(model, folder):
    """A network of timm with random weights, saved as published ones are."""
    import timm
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    folder.mkdir()
    save_file(timm.create_model(model, num_classes=0).state_dict(), folder / "model.safetensors")
    return folder


def dfine(folder):
    """A small D-FINE with random weights, and the classes of Objects365, of which the first is none."""
    import torch
    import transformers

    channels = {"stage_in_channels": [8, 8, 8, 16], "stage_mid_channels": [8] * 4, "stage_out_channels": [8, 8, 16, 16]}
    backbone = transformers.HGNetV2Config(
        **channels,
        stem_channels=[3, 8, 8],
        hidden_sizes=[8, 8, 16, 16],
        depths=[1] * 4,
        embedding_size=8,
        stage_num_blocks=[1] * 4,
        stage_downsample=[False, True, True, True],
        stage_light_block=[False] * 4,
        stage_kernel_size=[3] * 4,
        stage_numb_of_layers=[1] * 4,
        out_features=["stage2", "stage3", "stage4"],
    )
    config = transformers.DFineConfig(
        backbone_config=backbone,
        encoder_hidden_dim=16,
        encoder_in_channels=[8, 16, 16],
        decoder_in_channels=[16] * 3,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        d_model=16,
        num_queries=40,
        decoder_layers=2,
        decoder_n_points=[2] * 3,
        hidden_expansion=0.5,
        num_denoising=0,
        id2label={0: "None"} | {number: f"thing {number}" for number in range(1, 366)},
    )
    torch.manual_seed(0)
    transformers.DFineForObjectDetection(config).save_pretrained(folder)
    transformers.RTDetrImageProcessor(size={"height": 64, "width": 64}).save_pretrained(folder)
    return folder
