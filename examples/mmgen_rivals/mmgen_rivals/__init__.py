"""Configs of the recurrent systems that BERT-gen is compared with: LSTM, tags, triplet loss, Monte Carlo dropout.

An LSTM writes from a picture's pooled feature (Sample and Max of Yang et al., 2015), from picture and caption with a
triplet loss (MDN-Joint; Patro et al., 2018), and from a mixture of experts under Monte Carlo dropout (MC-SBN; Patro et
al., 2020).
"""

from typing import ClassVar, Literal

import mmgen
from mmgen_generators import Causal
from pydantic import Field

MMGEN_API = 4


class Lstm(mmgen.BackboneConfig):
    """An LSTM that writes. The inputs of a step choose how they become its first input: a picture alone is pooled
    (Sample, Max); picture and caption are joined (MDN-Joint); with tags or a place, a gate mixes experts (MC-SBN).
    Without a picture it reads its inputs in order."""

    type: Literal["lstm"] = "lstm"
    mixes: ClassVar = "row"

    hidden_size: int = Field(512, ge=1, description="width of words, states and all layers that join inputs")
    num_hidden_layers: int = Field(1, ge=1, description="layers of the LSTM that writes")
    vocab_size: int = Field(10000, ge=16, description="most word pieces of the vocabulary, trained on the data's texts")
    dropout: float = Field(0.5, ge=0, lt=1, description="of the states in front of the words")
    fusion_dropout: float = Field(0.5, ge=0, lt=1, description="in the layers that join inputs")
    monte_carlo_dropout: float = Field(
        0.5, ge=0, lt=1, description="Bernoulli dropout of the experts, which decoding.passes turns on in writing too"
    )
    picture_input: str = Field("image", description="name of the input that is pooled")
    caption_input: str = Field("caption", description="name of the input that is joined with the picture")
    tags_input: str = Field("tags", description="name of the input of the second expert")
    place_input: str = Field("place", description="name of the input of the third expert")

    def build(self, texts=None, folder=None):
        from .backbone import LstmBackbone

        return LstmBackbone.built(self, texts, folder)


class Tags(mmgen.EmbedderConfig):
    """The words of a caption without function words (articles, prepositions, pronouns, auxiliaries), as the backbone's
    word embeddings."""

    type: Literal["tags"] = "tags"
    fields: tuple[str, ...] = Field(("caption",), min_length=1, description="fields with the texts that have the tags")
    max_tags: int = Field(8, ge=1, description="most tags of an example, in the order of the text")

    def build(self, backbone):
        from .tags import TagEmbedder

        return TagEmbedder(self, backbone)

    def texts(self, example):
        values = (example.inputs.get(field, ()) for field in self.fields)
        return tuple(text for value in values for text in ((value,) if isinstance(value, str) else value))


class Triplet(mmgen.ObjectiveConfig):
    """A triplet loss over exemplars: the inputs of a picture that looks alike must be nearer than those of one that
    does not, by a margin (Patro et al., 2018, section 4.1.3). Exemplars are training examples, with their captions."""

    type: Literal["triplet"] = "triplet"
    picture: str = Field("image", description="name of the input with stored features, by which pictures are alike")
    margin: float = Field(0.2, ge=0, description="how much nearer, in squared Euclidean distance")
    supporting: int = Field(1, ge=1, description="rank of the supporting exemplar among all other pictures")
    contrasting: int = Field(200, ge=2, description="rank of the contrasting exemplar; of fewer pictures the last")

    def build(self, backbone, vocabularies):
        from .triplet import TripletObjective

        return TripletObjective(self)

    def errors(self, inputs):
        if not isinstance(inputs.get(self.picture), mmgen.FeaturesConfig):
            return f"needs the input '{self.picture}' with stored features; name such an input in its key 'picture'"
        return ""


class MonteCarloDecoding(mmgen.Decoding):
    """`Decoding`, with passes of Monte Carlo dropout."""

    passes: int = Field(
        0,
        ge=0,
        le=1000,
        description="networks, each with fixed units dropped, whose probabilities of a word are averaged; 0: the "
        "network without dropout. Only layers with Monte Carlo dropout change",
    )


class MonteCarlo(Causal):
    """The generator `causal`, which can write with Monte Carlo dropout (Gal and Ghahramani, 2016): it averages the
    probabilities of a word over several networks drawn by dropout."""

    type: Literal["monte_carlo"] = "monte_carlo"  # type: ignore[assignment]
    decoding: ClassVar = MonteCarloDecoding

    def build(self, backbone):
        from .generator import MonteCarloGenerator

        return MonteCarloGenerator(self, backbone)


@mmgen.hookimpl
def register_backbones():
    return [Lstm]


@mmgen.hookimpl
def register_embedders():
    return [Tags]


@mmgen.hookimpl
def register_objectives():
    return [Triplet]


@mmgen.hookimpl
def register_generators():
    return [MonteCarlo]
