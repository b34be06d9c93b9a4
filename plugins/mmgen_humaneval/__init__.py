"""Human evaluation: a blind sheet of questions to be rated by people, and what the filled sheets say."""

from typing import Literal

import mmgen


class Judge(mmgen.CommandConfig):
    """Human evaluation: blind sheets for judges, and what they said."""

    type: Literal["judge"] = "judge"

    def build(self):
        from .command import judge

        return judge


@mmgen.hookimpl
def register_commands():
    return [Judge]
