"""The tasks VQA, NLVR2, VCR, RefCOCO, Flickr30K Entities and COCO's captions: data sets, metrics, result files, cards.

VisualBERT and VL-BERT are judged by them. A task is a file; its objective is in `mmgen_objectives`, VQA's files are
read in `mmgen_data`, and the drawn versions are in `mmgen_scenes`.
"""

import mmgen

from .captions import CocoCaptions
from .cards import BoxesCard, ChoiceCard, LabelCard, RegionCard
from .flickr30k import Flickr30kEntities, PhraseRecall
from .nlvr2 import Nlvr2, PairAccuracy
from .refcoco import BoxAccuracy, Refcoco
from .vcr import ChoiceAccuracy, Vcr, VcrTexts
from .vqa import VqaAccuracy


@mmgen.hookimpl
def register_metrics():
    return [VqaAccuracy, PairAccuracy, ChoiceAccuracy, BoxAccuracy, PhraseRecall]


@mmgen.hookimpl
def register_datasets():
    return [Nlvr2, Vcr, VcrTexts, Refcoco, Flickr30kEntities, CocoCaptions]


@mmgen.hookimpl
def register_renderers():
    return [LabelCard, ChoiceCard, RegionCard, BoxesCard]
