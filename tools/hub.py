"""Load every published VisualBERT checkpoint and compare it with transformers' class: `python -m tools.hub`, by hand,
from the checkout. Needs a connection. Skipped checkpoints are listed with the reason.

The same words and regions go through both models; every state of the encoder is compared."""

import argparse
from types import SimpleNamespace

import torch
from mmgen_visualbert import VisualBert, VisualBertRegions
from mmgen_visualbert.backbone import VisualBertBackbone
from transformers import BertConfig, BertForMaskedLM, VisualBertModel

from mmgen.errors import MmgenError
from mmgen.sequence import lay_out
from mmgen.storage.published_weights import read_published
from mmgen.tensors import Segment

NAMES = [
    (f"uclanlp/visualbert-{task}{stage}", width)
    for task, width in (("vqa", 2048), ("nlvr2", 1024), ("vcr", 512))
    for stage in ("", "-pre", "-coco-pre")
]
IDS = SimpleNamespace(cls_token_id=101, sep_token_id=102, mask_token_id=103, pad_token_id=0)
REGIONS = 5


@torch.no_grad()
def difference(name: str, width: int) -> float:
    """The largest difference between our states and theirs. Raises the errors of loading, and RuntimeError for
    weights that no parameter takes."""
    theirs = VisualBertModel.from_pretrained(name).eval()
    sizes = {key: value for key, value in theirs.config.to_dict().items() if key in BertConfig().to_dict()}
    sizes.pop("model_type")
    backbone = VisualBertBackbone(VisualBert(), BertForMaskedLM(BertConfig(**sizes)), IDS).eval()
    backbone.add_pooler()
    embedder = VisualBertRegions(width=width, fingerprint={}, fields=("image",)).build(backbone).eval()
    weights = read_published(name)
    for part in (backbone, embedder):
        missing, unexpected = part.load_state_dict(part.published(weights), strict=False)
        if unexpected or [key for key in missing if ".cls." not in f".{key}"]:
            raise RuntimeError(f"missing {missing}, unexpected {unexpected}")
    torch.manual_seed(0)
    ids = torch.randint(1000, 20_000, (1, 9))
    features = torch.randn(1, REGIONS, width)
    mask = torch.ones(1, REGIONS, dtype=torch.bool)
    text = Segment(backbone.embed(ids), torch.ones_like(ids, dtype=torch.bool))
    slots, _ = lay_out([("caption", text), ("image", embedder(features=features, mask=mask))])
    expected = theirs(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        visual_embeds=features,
        visual_attention_mask=mask.long(),
        visual_token_type_ids=torch.zeros(1, REGIONS, dtype=torch.long),
    ).last_hidden_state
    return float((backbone.encode(slots).last - expected).abs().max())


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    print("| checkpoint | largest difference |\n|---|---|")
    for name, width in NAMES:
        try:
            result = f"{difference(name, width):.1e}"
        except (OSError, MmgenError) as error:
            result = f"skipped: {' '.join(str(error).split())[:90]}"
        print(f"| {name} | {result} |")
