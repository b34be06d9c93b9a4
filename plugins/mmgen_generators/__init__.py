"""Configs of generators: BERT-gen's masked decoding, the next token without [MASK], and texts in any order."""

from typing import Any, Literal

from pydantic import Field

import mmgen

LOWEST = 1e-6  # temperature that is not 0: by a lower one, logits become infinite
MaxTokens = Field(20, ge=2, description="tokens per text, including the end token; longer targets are cut")
Order = Literal["confidence", "margin", "entropy", "left_to_right", "random"]


class Masked(mmgen.GeneratorConfig):
    """The masked-decoding generator of BERT-gen (bertgen, section 3.2)."""

    type: Literal["masked"] = "masked"
    query_labels = ("prompt",)
    max_tokens: int = MaxTokens

    def build(self, backbone):
        from .masked import MaskedGenerator

        return MaskedGenerator(self, backbone)


class Causal(mmgen.GeneratorConfig):
    """Next-token prediction: every slot of a target predicts the next one."""

    type: Literal["causal"] = "causal"
    query_labels = ("prompt",)
    backbones = frozenset({"visible", "row"})  # one of "row" must read from left to right, as `needs` says
    max_tokens: int = MaxTokens

    def build(self, backbone):
        from .causal import CausalGenerator

        return CausalGenerator(self, backbone)


class AnyOrderDecoding(mmgen.DecodingConfig):
    """How texts are written: a pass predicts all open places, and some of the predictions are kept."""

    steps: int | None = Field(
        None, ge=1, le=1000, description="passes per block; by default one token per pass, as many passes as places"
    )
    order: Order = Field(
        "confidence",
        description="which predictions a pass keeps first: the most probable tokens (confidence), those furthest ahead "
        "of the second (margin), those with the lowest entropy, the leftmost, or random ones",
    )
    threshold: float | None = Field(
        None, gt=0, le=1, description="a pass keeps all tokens with a higher probability, at least one"
    )
    remask: bool = Field(
        False,
        description="mask-predict (Ghazvininejad et al., 2019): a pass keeps all tokens, then masks the least probable "
        "of all again; needs steps",
    )
    temperature: float = Field(
        0.0, ge=0, le=1e6, description="divides the logits before sampling; 0 takes the most probable token"
    )
    lengths: int = Field(
        3, ge=1, le=100, description='with length = "head": the most probable lengths to write; the best text is kept'
    )
    num_return_sequences: int = Field(1, ge=1, le=1000, description="texts per example; several need a temperature")

    def model_post_init(self, context: Any) -> None:
        if 0 < self.temperature < LOWEST:
            raise ValueError(f"temperature: must be 0, or from 1e-6 to 1e6, not {self.temperature:g}")
        if self.num_return_sequences > 1 and not self.temperature:
            raise ValueError(
                f"num_return_sequences: {self.num_return_sequences} different texts need a temperature above 0"
            )
        if self.steps is not None and self.threshold is not None:
            raise ValueError("threshold: cannot be combined with steps; remove one of the two")
        if self.remask and self.steps is None:
            raise ValueError("remask: needs steps, the number of passes")
        for name in ("remask", "threshold"):
            if getattr(self, name) and self.order != "confidence":
                raise ValueError(f'{name}: needs order = "confidence"')

    @property
    def samples(self):
        return self.temperature > 0 or self.order == "random"

    def for_texts(self, n):
        """Sampling, if there is more than one text."""
        temperature = self.temperature if n == 1 else self.temperature or 1.0
        return self.model_copy(update={"num_return_sequences": n, "temperature": temperature})


class AnyOrder(mmgen.GeneratorConfig):
    """Writes the tokens of a text in any order, several per pass if wanted; fills gaps in given texts."""

    type: Literal["any_order"] = "any_order"
    decoding = AnyOrderDecoding
    query_labels = ("text",)
    max_tokens: int = MaxTokens
    block: int | None = Field(
        None,
        ge=1,
        description="tokens per block; blocks are written from left to right, each in any order. 1 trains and writes "
        "like the generator 'masked'. By default the whole text is one block",
    )
    length: Literal["head", "end"] = Field(
        "head",
        description='how the length of a text is decided: "head" predicts it from the inputs before the text is '
        'written; "end" lets the text end at the first end token that is written, and blocks need it',
    )

    def model_post_init(self, context: Any) -> None:
        if self.block is not None and self.length == "head":
            raise ValueError('length: blocks need length = "end"; set it, or remove block')

    def build(self, backbone):
        from .any_order import AnyOrderGenerator, BlocksOfOneGenerator

        return (BlocksOfOneGenerator if self.block == 1 else AnyOrderGenerator)(self, backbone)

    def refuses(self, decoding):
        if self.length == "end" and decoding.lengths != AnyOrderDecoding.model_fields["lengths"].default:
            return {"lengths": 'generator.length = "end" predicts no lengths; remove lengths'}
        return {}


@mmgen.hookimpl
def register_generators():
    return [Masked, Causal, AnyOrder]
