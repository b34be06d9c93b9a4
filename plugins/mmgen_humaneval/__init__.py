"""Human evaluation: a blind sheet of questions to be rated by people, and what the filled sheets say."""

from typing import ClassVar, Literal

import mmgen


class Judge(mmgen.CommandConfig):
    """Make blind sheets for human judges, and read what they said."""

    type: Literal["judge"] = "judge"
    group: ClassVar[str] = "Evaluate"

    def build(self):
        from .command import judge

        return judge


@mmgen.hookimpl
def register_commands():
    return [Judge]
