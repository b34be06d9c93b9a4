"""Generators: what they write, and that options of decoding are obeyed or refused."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..configs import BackboneConfig, EmbedderConfig, GeneratorConfig
from ..decoding import Decoding
from ..errors import UnavailableError
from ..tensors import Batch, Example, Generation
from .suite import Suite, expect
from .tiny import Tiny
from .toy import TEXTS, Toy, Words

GENERATE = "mmgen.objectives.Generator.generate"
REFUSES = "mmgen.configs.GeneratorConfig.refuses"
OBEY = "obey an option, or refuse it with an UnavailableError that names it"


class WritingSuite(Suite[GeneratorConfig]):
    """A generator under test, and what it writes."""

    def backbone_config(self) -> BackboneConfig:
        return Tiny(width=32)

    def examples(self) -> Sequence[Example]:
        """Five examples whose captions and targets have different lengths."""
        made = Toy().build().split("train")[::3][:5]
        return [
            Example(one.id, {"caption": one.inputs["caption"][number % 2]}, one.targets[: 1 + number % 2])
            for number, one in enumerate(made)
        ]

    def model(self, caption: EmbedderConfig | None = None) -> Any:
        """The generator in a `mmgen.model.Model`, in eval mode."""
        from ..model import compose

        inputs = {"caption": caption or Words()}
        return self.seeded(compose, self.backbone_config(), inputs, self.config(), texts=TEXTS).eval()

    def batch(self, model: Any, examples: Sequence[Example], objectives: Sequence[str] = ("generator",)) -> Batch:
        from ..data.collate import Collator

        return Collator(model, ("caption",), objectives=objectives)(examples)

    def write(self, model: Any, examples: Sequence[Example], **options: Any) -> list[list[Generation]]:
        with torch.no_grad():
            return model.generator.generate(model, self.batch(model, examples, objectives=()), Decoding(**options))

    def offered(self, model: Any, examples: Sequence[Example], **options: Any) -> list[list[Generation]] | None:
        """The texts, or None where the generator refuses these options, which is as good as obeying them."""
        told, given = self.config().refuses(Decoding(**options)), _shown(options)
        try:
            texts = self.write(model, examples, **options)
        except UnavailableError as error:
            named = [name for name in options if name in str(error)]
            expect(named, f"{given} is refused without naming an option: '{error}'", GENERATE)
            expect(told, f"{given} is refused only when writing begins; let `refuses` tell {named[0]} too", REFUSES)
            return None
        expect(not told, f"`refuses` tells {', '.join(told)}, and generate writes with {given} all the same", REFUSES)
        return texts

    def test_what_it_writes(self) -> None:
        model, examples = self.model(), self.examples()
        beams = self.offered(model, examples, num_beams=2, num_return_sequences=2)
        written = self.write(model, examples) if beams is None else beams
        wanted = 1 if beams is None else 2
        expect(
            len(written) == len(examples) and all(len(texts) == wanted for texts in written),
            "generate must give num_return_sequences texts for each example",
            GENERATE,
        )
        for example, texts in zip(examples, written, strict=True):
            for one in texts:
                expect(
                    one.id == example.id,
                    f"a text of '{example.id}' carries the id '{one.id}'",
                    "mmgen.tensors.Generation",
                )
                expect(
                    one.text == model.backbone.decode_text(one.tokens),
                    f"the text '{one.text}' is not what its tokens say",
                    "mmgen.tensors.Generation",
                )
                expect(
                    math.isfinite(one.score) and one.score <= 1e-6,
                    f"score is {one.score}; it is a mean log-probability",
                    "mmgen.tensors.Generation",
                )

    def test_longest_text(self) -> None:
        model = self.model()
        limit, end = model.generator.max_tokens, model.backbone.end_id
        for options in ({}, {"num_beams": 2}, {"do_sample": True}):
            for (one,) in self.offered(model, self.examples(), **options) or ():
                expect(
                    len(one.tokens) <= limit, f"a text has {len(one.tokens)} tokens; max_tokens is {limit}", GENERATE
                )
                whole = one.tokens[-1:] == (end,) or len(one.tokens) == limit
                expect(
                    whole and end not in one.tokens[:-1],
                    "a text must stop with its first end token, which is kept, or at max_tokens",
                    GENERATE,
                )

    def test_a_batch_writes_what_its_singles_write(self) -> None:
        model, examples = self.model(), self.examples()
        for options in ({}, {"num_beams": 3}):
            together = self.offered(model, examples, **options)
            if together is None:
                continue
            for example, texts in zip(examples, together, strict=True):
                (alone,) = self.write(model, [example], **options)
                expect(
                    [one.tokens for one in texts] == [one.tokens for one in alone],
                    f"'{example.id}' gets '{texts[0].text}' in a batch and '{alone[0].text}' alone "
                    f"({options or 'greedy'})",
                    GENERATE,
                )
                expect(
                    abs(texts[0].score - alone[0].score) < 1e-3,
                    f"'{example.id}' gets another score in a batch",
                    GENERATE,
                )

    def test_the_default_options_are_obeyed(self) -> None:
        try:
            self.write(self.model(), self.examples())
        except UnavailableError as error:
            raise AssertionError(
                f"the default options are refused: {error}; a generator writes with `Decoding()`. Read: {GENERATE}"
            ) from None

    def test_greedy_is_the_likeliest_token_every_time(self) -> None:
        """Options of sampling that leave one token to draw."""
        model, examples = self.model(), self.examples()
        greedy = [one.tokens for (one,) in self.write(model, examples)]
        for options in ({"top_k": 1}, {"top_p": 1e-4}, {"min_p": 1.0}, {"temperature": 1e-4}):
            sampled = self.offered(model, examples, do_sample=True, **options)
            expect(
                sampled is None or greedy == [one.tokens for (one,) in sampled],
                f"greedy search differs from drawing among the one likeliest token ({_shown(options)}); {OBEY}",
                GENERATE,
            )

    def test_options_are_obeyed_or_refused(self) -> None:
        """Options that no search can obey and still write what it writes without them."""
        model, example = self.model(), self.examples()[:1]
        for options in (
            {"num_beams": 2, "num_return_sequences": 2},
            {"num_beams": 2, "num_return_sequences": 2, "num_beam_groups": 2, "diversity_penalty": 1e4},
        ):
            for texts in self.offered(model, example, **options) or ():
                expect(
                    len({one.tokens for one in texts}) == len(texts),
                    f"with {_shown(options)} one text is written twice; {OBEY}",
                    GENERATE,
                )
        draws = [self.offered(model, example, do_sample=True, temperature=5.0) for _ in range(8)]
        tokens = {one.tokens for drawn in draws if drawn for (one,) in drawn}
        expect(len(tokens) != 1, f"with do_sample=True the same text is drawn eight times; {OBEY}", GENERATE)
        for (one,) in self.offered(model, example, no_repeat_ngram_size=1) or ():
            words = [token for token in one.tokens if token != model.backbone.end_id]
            expect(
                len(set(words)) == len(words),
                f"with no_repeat_ngram_size=1 a token is written twice ('{one.text}'); {OBEY}",
                GENERATE,
            )

    def test_chance_comes_from_torchs_generator(self) -> None:
        model, examples = self.model(), self.examples()
        texts = [self.seeded(self.offered, model, examples, do_sample=True) for _ in range(2)]
        expect(texts[0] == texts[1], "with torch's generator seeded alike, sampling writes other texts", GENERATE)
        expect(
            self.write(model, examples) == self.write(model, examples),
            "greedy search writes other texts the second time",
            GENERATE,
        )

    def test_writing_changes_nothing(self) -> None:
        model = self.model()
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        for options in ({}, {"num_beams": 2}):
            self.offered(model, self.examples(), **options)
        changed = [name for name, tensor in model.state_dict().items() if not torch.equal(tensor, before[name])]
        expect(not changed, f"writing changes {', '.join(changed[:3])}", GENERATE)


def _shown(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items())
