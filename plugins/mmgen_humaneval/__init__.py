"""The config of the command `mmgen judge`: blind sheets of questions for people to rate, and their statistics."""

from typing import ClassVar, Literal

import mmgen


class Judge(mmgen.CommandConfig):
    """Make blind sheets for human judges, and score the filled sheets."""

    type: Literal["judge"] = "judge"
    group: ClassVar[str] = "Evaluate"

    def build(self):
        from .command import judge

        return judge


@mmgen.hookimpl
def register_commands():
    return [Judge]
