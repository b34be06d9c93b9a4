"""A collator that only measures: rows as long as texts, in characters."""

from mmgen.data.collate import Collator


class Lengths(Collator):
    """Rows with the length of an example's targets and of the values of some fields, in characters for each slot."""

    def __init__(self, *fields, characters=1):
        self.readers, self.targets = {}, {}
        self.fields, self.characters = fields, characters

    def pairs(self, example):
        return len(example.targets)

    def tail(self, example):
        return sum(map(len, example.targets)) / self.characters

    def measures(self):
        return dict.fromkeys(self.fields, lambda value: len(value) / self.characters)
