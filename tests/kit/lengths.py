"""A collator that only measures: rows as long as texts, in characters."""

from types import SimpleNamespace

from mmgen.data.collate import Collator


class Lengths(Collator):
    """Rows with the length of an example's targets and of the values of some fields, in characters for each slot."""

    def __init__(self, *fields, characters=1):
        reader = SimpleNamespace(slots=lambda value: len(value) / characters)
        self.readers, self.fields = dict.fromkeys(fields, reader), {field: (field,) for field in fields}

        def length(example):  # without the mark behind each input, which a row has too
            return sum(map(len, example.targets)) / characters - len(fields)

        self.targets = {"texts": SimpleNamespace(length=length, pairs=lambda example: len(example.targets))}
