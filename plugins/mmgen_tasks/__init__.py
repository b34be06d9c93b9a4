"""The tasks VQA, NLVR2, VCR, RefCOCO, Flickr30K Entities, COCO's captions: hooks, and a folder for each.

VisualBERT and VL-BERT are judged by them. Each folder has everything about one: the configs, the published files read
and written, the objective, the metric, the result file, the card, and the drawn version.
"""

import mmgen

from .captions.config import CocoCaptions
from .flickr30k.config import Flickr30kEntities, PhraseBoxes, PhraseRecall, PhraseRegions, ScenePhrases
from .nlvr2.config import Nlvr2, PairAccuracy, ScenePairs, SceneStatements, TextAssignment, TrueOrFalse, TruthBars
from .refcoco.config import BoxAccuracy, ChosenRegion, Refcoco, RegionChoice, SceneExpressions
from .vcr.config import ChoiceAccuracy, Choices, MultipleChoice, NamedTexts, SceneChoices, Vcr, VcrTexts
from .vqa.config import AnswerBars, AnswerClasses, SceneAnswers, VqaAccuracy, VqaAnswers


@mmgen.hookimpl
def register_metrics():
    return [VqaAccuracy, PairAccuracy, ChoiceAccuracy, BoxAccuracy, PhraseRecall]


@mmgen.hookimpl
def register_objectives():
    return [AnswerClasses, TrueOrFalse, TextAssignment, MultipleChoice, RegionChoice, PhraseRegions]


@mmgen.hookimpl
def register_datasets():
    published = [VqaAnswers, Nlvr2, Vcr, VcrTexts, Refcoco, Flickr30kEntities, CocoCaptions]
    return [*published, SceneAnswers, SceneExpressions, ScenePairs, SceneStatements, ScenePhrases, SceneChoices]


@mmgen.hookimpl
def register_renderers():
    return [AnswerBars, TruthBars, Choices, NamedTexts, ChosenRegion, PhraseBoxes]
