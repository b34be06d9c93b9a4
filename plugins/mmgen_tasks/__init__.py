"""The tasks that VisualBERT and VL-BERT are judged by: VQA, NLVR2, VCR, referring expressions and Flickr30K Entities.
For each: objectives, data sets in the published formats, and the official metrics."""

import mmgen

from .metrics import BoxAccuracy, ChoiceAccuracy, PairAccuracy, PhraseRecall, VqaAccuracy
from .objectives import AnswerClasses, MultipleChoice, PhraseRegions, RegionChoice, TrueOrFalse
from .published import CocoCaptions, Flickr30kEntities, Nlvr2, Refcoco, Vcr, VcrTexts, VqaAnswers


@mmgen.hookimpl
def register_metrics():
    return [VqaAccuracy, PairAccuracy, ChoiceAccuracy, BoxAccuracy, PhraseRecall]


@mmgen.hookimpl
def register_objectives():
    return [AnswerClasses, TrueOrFalse, MultipleChoice, RegionChoice, PhraseRegions]


@mmgen.hookimpl
def register_datasets():
    return [VqaAnswers, Nlvr2, Vcr, VcrTexts, Refcoco, Flickr30kEntities, CocoCaptions]
