"""Tests of the generator suite: texts, their tokens and lengths, and decoding options, which are obeyed or refused.

The contract is `mmgen.objectives.Generator.generate` and `mmgen.configs.GeneratorConfig.refuses`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..configs import EmbedderConfig, GeneratorConfig
from ..data.collate import Collator
from ..data.part_checks import write_texts
from ..decoding import Decoding, DecodingConfig
from ..errors import UnavailableError
from ..examples import Example, Generation
from ..model import compose
from ..tensors import Batch
from .objective import LearningSuite
from .suite import explained
from .toy import TEXTS, Toy

OBEY = "obey the option, or refuse it with an UnavailableError that names the option"


class WritingSuite(LearningSuite[GeneratorConfig]):
    """A generator under test and its texts."""

    name = "generator"

    def examples(self) -> Sequence[Example]:
        """Five examples whose captions and targets have different lengths."""
        toys = Toy().build().split("train")[::3][:5]
        return [
            Example(toy.id, {"caption": toy.inputs["caption"][number % 2]}, toy.targets[: 1 + number % 2])
            for number, toy in enumerate(toys)
        ]

    def model(self, caption: EmbedderConfig | None = None) -> Any:
        """`caption`: an embedder of captions instead of the suite's."""
        inputs = self.inputs() if caption is None else {"caption": caption}
        return self.seeded(compose, self.backbone_config(), inputs, self.config(), texts=TEXTS).eval()

    def to_write(self, model: Any, examples: Sequence[Example]) -> Batch:
        """Examples without their targets."""
        return Collator(model, model.inputs, objectives=())(examples)

    def decodings(self) -> Sequence[DecodingConfig]:
        """Options of the generator's own class to try, beside its defaults (`GeneratorConfig.decoding`)."""
        return ()

    def write(self, model: Any, examples: Sequence[Example], **options: Any) -> list[list[Generation]]:
        """Texts, checked as a run checks them."""
        return self.write_with(model, examples, self.config().decoding(**options))

    def write_with(self, model: Any, examples: Sequence[Example], options: DecodingConfig) -> list[list[Generation]]:
        batch = self.to_write(model, examples)
        with torch.no_grad():
            texts = write_texts(model, batch, options, examples)
        wrong = next((text for row in texts for text in row if not isinstance(text, Generation)), None)
        assert wrong is None, f"generate returns {wrong!r:.60}; expected a mmgen.examples.Generation"
        return texts

    def offered(self, model: Any, examples: Sequence[Example], **options: Any) -> list[list[Generation]] | None:
        """The texts, or None if the generator refuses these options, or has others, which is allowed."""
        if options and not issubclass(self.config().decoding, Decoding):
            return None
        refused, shown = self.config().refuses(self.config().decoding(**options)), _format_options(options)
        try:
            texts = self.write(model, examples, **options)
        except UnavailableError as error:
            named = [name for name in options if name in str(error)]
            assert named, f"{shown} is refused without naming an option: '{error}'"
            assert refused, f"{shown} is refused only in generate; let `refuses` return {named[0]} too"
            return None
        assert not refused, f"`refuses` returns {', '.join(refused)}, but generate writes with {shown}"
        return texts

    def test_texts_match_their_tokens(self) -> None:
        model, examples = self.model(), self.examples()
        beams = self.offered(model, examples, num_beams=2, num_return_sequences=2)
        for texts in self.write(model, examples) if beams is None else beams:
            for text in texts:
                right = text.text == model.backbone.decode_text(text.tokens)
                assert right, f"the text '{text.text}' is not the decoded text of its tokens"
                if text.score_kind == "confidence":
                    assert -1e-6 <= text.score <= 1 + 1e-6, (
                        f"score is {text.score}; a confidence must be between 0 and 1"
                    )
                else:
                    assert text.score <= 1e-6, (
                        f"score is {text.score}; a score must be a mean log-probability, or set "
                        'score_kind = "confidence"'
                    )

    def test_writes_no_special_tokens(self) -> None:
        """Also where they are likely: with untrained weights and, if it samples, at a temperature of 3."""
        model, examples, cls = self.model(), self.examples(), self.config().decoding
        own = [] if issubclass(cls, Decoding) else [cls(), *self.decodings()]
        own += [cls(**{"temperature": 3.0})] * 4 if own and "temperature" in cls.model_fields else []
        written = [self.seeded(self.write_with, model, examples, options) for options in own]
        for options in (
            {},
            {"do_sample": True, "temperature": 3.0, "num_return_sequences": 20},
            {"do_sample": True, "temperature": 3.0, "num_beams": 4, "num_return_sequences": 4},
            {"num_beams": 4, "num_return_sequences": 4},
        ):
            written.append(self.seeded(self.offered, model, examples, **options) or [])
        for text in (text for texts_by_example in written for texts in texts_by_example for text in texts):
            special = set(text.tokens) & {*model.backbone.forbidden_ids}
            assert not special, (
                f"the special token {model.backbone.tokenizer.convert_ids_to_tokens([*special])[0]} is written; leave "
                "out `backbone.forbidden_ids` (`mmgen.search`)"
            )

    def test_longest_text(self) -> None:
        model = self.model()
        for options in ({}, {"num_beams": 2}, {"do_sample": True}):
            self._assert_length(model, self.offered(model, self.examples(), **options) or ())

    def _assert_length(self, model: Any, texts_by_example: Sequence[Sequence[Generation]]) -> None:
        limit, end = model.generator.max_tokens, model.backbone.end_id
        for texts in texts_by_example:
            for text in texts:
                length = len(text.tokens)
                assert length <= limit, f"a text has {length} tokens; max_tokens is {limit}"
                stopped = text.tokens[-1:] == (end,) or length == limit
                assert stopped and end not in text.tokens[:-1], (
                    "a text must stop with its first end token, which is included, or at max_tokens"
                )

    def test_batches_equal_single_examples(self) -> None:
        model, examples = self.model(), self.examples()
        for options in ({}, {"num_beams": 3}):
            for example, texts in zip(examples, self.offered(model, examples, **options) or (), strict=False):
                (alone,) = self.write(model, [example], **options)
                assert [text.tokens for text in texts] == [text.tokens for text in alone], (
                    f"'{example.id}' gets '{texts[0].text}' in a batch and '{alone[0].text}' alone "
                    f"({_format_options(options) or 'greedy'})"
                )
                same = abs(texts[0].score - alone[0].score) < 1e-3
                assert same, f"'{example.id}' has a different score in a batch"

    def test_the_default_options_are_obeyed(self) -> None:
        name = self.config().decoding.__name__
        with explained(f"the default options are refused; a generator must write with `{name}()`"):
            self.write(self.model(), self.examples())

    def test_its_own_options(self) -> None:
        """The class of [decoding]: it has defaults, says what its keys are for, and survives JSON; with each of
        `decodings()`, texts have the right number and length, and do not depend on the batch or on earlier texts."""
        cls = self.config().decoding
        message = f"{cls.__name__}: the class of [decoding] must be a mmgen.DecodingConfig"
        assert isinstance(cls, type) and issubclass(cls, DecodingConfig), message
        silent = [name for name, info in cls.model_fields.items() if not info.description]
        assert not silent, f"{cls.__name__}: fields without a description: {', '.join(silent)}"
        with explained(f"{cls.__name__}: every field needs a default"):
            cls()
        model, examples = self.model(), self.examples()
        for options in self.decodings():
            assert cls.model_validate_json(options.model_dump_json()) == options, f"{options!r} changes in JSON"
            refused = self.config().refuses(options)
            assert not refused, f"decodings() has options that `refuses` returns: {', '.join(refused)}"
            first, second = (self.seeded(self.write_with, model, examples, options) for _ in range(2))
            assert first == second, f"with the same seed of torch, {options!r} writes different texts"
            self._assert_length(model, first)
            with torch.random.fork_rng():
                torch.manual_seed(1)
                drawn = self.write_with(model, examples, options) != first
            assert options.samples or not drawn, f"{options!r} draws, but its `samples` is False"
            for example, texts in zip(examples, first, strict=True) if not drawn else ():
                (alone,) = self.write_with(model, [example], options)
                same = [text.tokens for text in texts] == [text.tokens for text in alone]
                assert same, f"'{example.id}' gets different texts in a batch than alone ({options!r})"

    def test_greedy_takes_the_likeliest_token(self) -> None:
        """Options of sampling that leave one token to sample."""
        model, examples = self.model(), self.examples()
        greedy = [text.tokens for (text,) in self.write(model, examples)]
        for options in ({"top_k": 1}, {"top_p": 1e-4}, {"min_p": 1.0}, {"temperature": 1e-4}):
            sampled = self.offered(model, examples, do_sample=True, **options)
            same = sampled is None or greedy == [text.tokens for (text,) in sampled]
            assert same, (
                f"greedy search differs from sampling the likeliest token only ({_format_options(options)}); {OBEY}"
            )

    def test_options_are_obeyed_or_refused(self) -> None:
        """Options that must change the texts of any search that obeys them."""
        model, example = self.model(), self.examples()[:1]
        beams = {"num_beams": 2, "num_return_sequences": 2}
        for texts in self.offered(model, example, **beams) or ():
            different = len({text.tokens for text in texts}) == len(texts)
            assert different, f"with {_format_options(beams)} the same text is written twice; {OBEY}"
        draws = [self.offered(model, example, do_sample=True, temperature=5.0) for _ in range(8)]
        tokens = {text.tokens for drawn in draws if drawn for (text,) in drawn}
        assert len(tokens) != 1, f"with do_sample=True the same text is drawn eight times; {OBEY}"
        for (text,) in self.offered(model, example, no_repeat_ngram_size=1) or ():
            words = [token for token in text.tokens if token != model.backbone.end_id]
            message = f"with no_repeat_ngram_size=1 a token is written twice ('{text.text}'); {OBEY}"
            assert len(set(words)) == len(words), message

    def test_sampling_uses_torchs_generator(self) -> None:
        model, examples = self.model(), self.examples()
        first, second = (self.seeded(self.offered, model, examples, do_sample=True) for _ in range(2))
        assert first == second, "with the same seed of torch, sampling writes different texts"
        same = self.write(model, examples) == self.write(model, examples)
        assert same, "greedy search writes different texts the second time"

    def test_writing_changes_nothing(self) -> None:
        model = self.model()
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        for options in ({}, {"num_beams": 2}):
            self.offered(model, self.examples(), **options)
        changed = [name for name, tensor in model.state_dict().items() if not torch.equal(tensor, before[name])]
        assert not changed, f"writing changes {', '.join(changed[:3])}"


def _format_options(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items())
