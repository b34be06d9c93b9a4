"""A tiny random Faster R-CNN in the form in which that of Visual Genome is published."""

import torch
from mmgen_extractors.visual_genome_network import Settings

SETTINGS = Settings(
    min_size=96, max_size=160, proposals_before=60, proposals=40, overlaps=(0.5, 0.6), pooled=4, min_regions=4
)


def weights(seed=0):
    """Tensors by the published names: every stage one block or two, few channels, 5 classes, 3 attributes."""
    torch.manual_seed(seed)
    tensors = {}

    def convolution(name, out, into, size):
        tensors[f"{name}.weight"] = torch.randn(out, into, size, size) / (into * size * size) ** 0.5
        for part, values in (("weight", torch.ones(out)), ("bias", torch.zeros(out))):
            tensors[f"{name}.norm.{part}"] = values
        tensors[f"{name}.norm.running_mean"] = torch.randn(out) * 0.1
        tensors[f"{name}.norm.running_var"] = torch.rand(out) + 0.5
        tensors[f"{name}.norm.num_batches_tracked"] = torch.tensor(1)

    def stage(name, into, inner, out, count):
        for number in range(count):
            convolution(f"{name}.{number}.conv1", inner, into, 1)
            convolution(f"{name}.{number}.conv2", inner, inner, 3)
            convolution(f"{name}.{number}.conv3", out, inner, 1)
            if into != out:
                convolution(f"{name}.{number}.shortcut", out, into, 1)
            into = out

    def linear(name, out, into, *size):
        tensors[f"{name}.weight"] = torch.randn(out, into, *size) * 0.3 / into**0.5
        tensors[f"{name}.bias"] = torch.randn(out) * 0.1

    convolution("backbone.stem.conv1", 4, 3, 7)
    stage("backbone.res2", 4, 4, 8, 1)
    stage("backbone.res3", 8, 4, 16, 2)
    stage("backbone.res4", 16, 8, 32, 1)
    stage("roi_heads.res5", 32, 8, 64, 2)
    head = "proposal_generator.rpn_head."
    linear(f"{head}conv", 12, 32, 3, 3)
    linear(f"{head}objectness_logits", 4, 12, 1, 1)
    linear(f"{head}anchor_deltas", 16, 12, 1, 1)
    sides = torch.tensor([[16.0, 32.0], [32.0, 16.0], [40.0, 40.0], [64.0, 64.0]]) / 2
    tensors["proposal_generator.anchor_generator.cell_anchors.0"] = torch.cat([-sides, sides], 1)
    predictor = "roi_heads.box_predictor."
    linear(f"{predictor}cls_score", 6, 64)
    linear(f"{predictor}bbox_pred", 20, 64)
    tensors[f"{predictor}cls_embedding.weight"] = torch.randn(6, 8)
    linear(f"{predictor}fc_attr", 16, 72)
    linear(f"{predictor}attr_score", 4, 16)
    return tensors


def published(folder):
    folder.mkdir()
    torch.save(weights(), folder / "pytorch_model.bin")
    (folder / "objects_vocab.txt").write_text("cat\ndog,puppy\ntree\nball\ncar\n")
    (folder / "attributes_vocab.txt").write_text("red\ngreen\nold\n")
    return folder
