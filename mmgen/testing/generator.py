"""The conformance suite of generators: layout of targets, training, texts, and decoding options, which are obeyed or
refused. The contract is in `mmgen.objectives.Generator`, `mmgen.objectives.TextTargets`, `mmgen.tensors.Tail` and
`mmgen.configs.GeneratorConfig`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import torch

from ..configs import EmbedderConfig, GeneratorConfig
from ..decoding import Decoding, DecodingConfig
from ..errors import UnavailableError
from ..evaluation.answers import generate
from ..examples import Example, Generation
from ..model import compose
from ..tensors import Targets
from .objective import LearningSuite
from .suite import assert_described, assert_type, skip
from .toy import TEXTS, Toy, Words

Texts = list[list[Generation]]

WAYS: tuple[tuple[dict[str, Any], Any], ...] = (  # options of left to right, what texts must be beside the greedy one
    ({}, lambda texts, greedy: texts == [greedy]),
    ({"num_beams": 4, "num_return_sequences": 4}, lambda texts, greedy: len({*texts}) == 4),
    ({"no_repeat_ngram_size": 1}, lambda texts, greedy: len({*texts[0]}) == len(texts[0])),
    ({"do_sample": True, "temperature": 3.0, "num_return_sequences": 20}, lambda texts, greedy: len({*texts}) > 1),
    *(
        ({"do_sample": True, name: value}, lambda texts, greedy: texts == [greedy])
        for name, value in {"top_k": 1, "top_p": 1e-4, "min_p": 1.0, "temperature": 1e-4}.items()
    ),
)


class GeneratorSuite(LearningSuite[GeneratorConfig]):
    """What training and writing rely on. `config()` returns a `GeneratorConfig`. The suite tests it on the tiny
    backbone with the toy data set's captions as input."""

    name = "generator"

    def examples(self) -> Sequence[Example]:
        """Five examples whose captions and targets have different lengths."""
        return [
            replace(toy, inputs={"caption": toy.inputs["caption"][number % 2]}, targets=toy.targets[: 1 + number % 2])
            for number, toy in enumerate(Toy().build().split("train")[::3][:5])
        ]

    def model(self, caption: EmbedderConfig | None = None) -> Any:
        """`caption`: an embedder of captions instead of the suite's."""
        inputs = self.inputs() if caption is None else {"caption": caption}
        return self.seeded(compose, self.backbone_config(), inputs, self.buildable(), texts=TEXTS).eval()

    def decodings(self) -> Sequence[DecodingConfig]:
        """Options of the generator's own class to try, beside its defaults (`GeneratorConfig.decoding`)."""
        return ()

    def write(self, model: Any, examples: Sequence[Example], options: DecodingConfig | None = None) -> Texts:
        """Texts, checked as a run checks them; none if the generator refuses these options, which is allowed for all
        but the default ones."""
        config, default = self.config(), self.config().decoding()
        options = options or default
        refused, shown = config.refuses(options), options.model_dump(exclude_defaults=True)
        try:
            texts: Texts = self.seeded(generate, model, examples, options)
        except UnavailableError as error:
            named = options != default and any(name in str(error) for name in refused)
            assert named, (
                f"generate refuses {shown} ({error}); `refuses` and the message must name an option that is set"
            )
            return []
        assert not refused, f"`refuses` returns {', '.join(refused)}, but generate writes with {shown}"
        for row in texts:
            assert_type(row[0], Generation, "generate")
        return texts

    def assert_alone_as_together(self, model: Any, options: DecodingConfig | None = None) -> None:
        for example, (batched, *_) in zip(self.examples(), self.write(model, self.examples(), options), strict=False):
            ((alone, *_),) = self.write(model, [example], options)
            assert alone.tokens == batched.tokens and abs(alone.score - batched.score) < 1e-3, (
                f"'{example.id}' gets '{batched.text}' in a batch and '{alone.text}' alone ({options}); keep the "
                "prefix in step with the rows (prefix.select, prefix.repeat), and draw with batch.seeds"
            )

    def test_layout_of_targets(self) -> None:
        """Attention maps and probes read the rows of `lay_out`; training must read the same, or declare that it does
        not."""
        model = self.model()
        generator, reader, batch = model.generator, model.generator.reader, self.batch(model, self.examples())
        tail: Any = batch.tail
        for length in (2, 5):
            slots, count = reader.slots(length), reader.lay_out([[[model.backbone.mask_id] * length]]).ids.shape[1]
            message = f"slots({length}) is {slots}, but lay_out returns {count} slots for a target of {length} tokens"
            assert slots == count, message
        pad_id, laid_out = model.backbone.pad_id, sorted(tail.ids[tail.layout.real].tolist())
        with mock.patch.object(model.backbone, "embed", wraps=model.backbone.embed) as embed:
            self.seeded(model, batch)
        read = [sorted(call.args[0][call.args[0] != pad_id].tolist()) for call in embed.call_args_list]
        assert laid_out in read or not generator.reads_as_laid_out, (
            "forward reads different tokens than lay_out returned, so attention maps would show rows that the model "
            "never reads; set reads_as_laid_out = False"
        )

    def test_targets_of_one_example_do_not_see_one_another(self) -> None:
        model = self.model()
        example = next(example for example in self.examples() if len(example.targets) > 1)
        a, b = example.targets[:2]
        ab, ba, aa, bb = (
            sum(model(self.batch(model, [replace(example, targets=targets)])).sums.values())
            for targets in ((a, b), (b, a), (a, a), (b, b))
        )
        assert torch.isclose(ab + ba, aa + bb, 1e-4, 1e-2), (
            "the loss of an example with several targets must be the sum of the targets' losses, and what is drawn for "
            "a target must not depend on the others"
        )

    def test_overfits_one_pair(self) -> None:
        """Also behind words that share a position and add a term to written tokens."""
        example = self.examples()[0]
        for caption in (None, Words(bag=True)):
            model = self.model(caption)
            first, last = self.sixty_updates(model, [example], fresh=True)
            assert last < 0.2 * first, f"sixty updates on one pair lower the loss only from {first:.2f} to {last:.2f}"
            backbone, ((text,),) = model.eval().backbone, self.write(model, [example])
            written = text.text
            assert written == backbone.decode_text(backbone.encode_text(example.targets[0])), (
                f"trained on '{example.targets[0]}' alone, the generator writes '{written}'; writing must use what "
                "training uses: write with model.written or model.behind, and do not count slots"
            )
            self.assert_alone_as_together(model)

    def test_trains_as_it_writes(self) -> None:
        """The score of a text is minus its mean loss, also behind an input that adds terms to written tokens."""
        example = self.examples()[:1]
        for caption in (None, Words(bag=True)):
            model = self.model(caption)
            generator, reader = model.generator, model.generator.reader
            if not generator.reads_as_laid_out:
                skip("training reads other rows")
            ((written,),) = self.write(model, example)
            targets = Targets(dict.fromkeys(reader.losses, 1), tail=reader.lay_out([[[*written.tokens]]]))
            loss = sum(generator(model, self.batch(model, example), targets).sums.values()) / len(written.tokens)
            same = abs(loss.item() + written.score) < 1e-3
            if caption is None and not same:
                skip("the score of a text is not minus its mean loss")
            assert same, (
                "with an input that adds terms to written tokens, the score of a text is not minus its mean loss; "
                "write with model.written or model.behind, which add the terms too"
            )

    def test_every_way_of_writing(self) -> None:
        """Texts are those of their tokens, end in time, depend on the seed and the example alone, and obey options."""
        model, examples, cls = self.model(), self.examples(), self.config().decoding
        assert_described(cls)
        ((greedy,),) = self.write(model, examples[:1])
        ways = [(cls(**options), right) for options, right in (WAYS if issubclass(cls, Decoding) else WAYS[:1])]
        for options, right in (*ways, *((options, None) for options in self.decodings())):
            assert cls.model_validate_json(options.model_dump_json()) == options, f"{options!r} changes in JSON"
            texts = self.write(model, examples, options)
            for text in (text for row in texts for text in row):
                assert_text(model, text)
            assert not texts or not right or right([text.tokens for text in texts[0]], greedy.tokens), (
                f"with {options!r} the generator writes '{texts[0][0].text}', and by default '{greedy.text}'; obey the "
                "options, or refuse them with an UnavailableError that names one"
            )
            again = self.write(model, examples, options)
            assert texts == again, f"with the same seed of torch, {options!r} writes different texts the second time"
            self.seed += 1
            drawn = texts != self.write(model, examples, options)
            assert options.samples or not drawn, f"{options!r} draws, but its `samples` is False"
            self.assert_alone_as_together(model, options)


def assert_text(model: Any, text: Generation) -> None:
    """Fails unless a text is that of its tokens, and ends in time."""
    backbone, limit, length = model.backbone, model.generator.max_tokens, len(text.tokens)
    right = text.text == backbone.decode_text(text.tokens)
    assert right, f"the text '{text.text}' is not the decoded text of its tokens"
    special = {*text.tokens} & {*backbone.forbidden_ids}
    assert not special, "a special token is written; leave out `mmgen.parts.Backbone.forbidden_ids`"
    ends = [number for number, token in enumerate(text.tokens, 1) if token == backbone.end_id]
    stops = length <= limit and (ends == [length] or not ends and length == limit)
    assert stops, f"a text of {length} tokens must stop with its first end token, or at max_tokens, which is {limit}"
