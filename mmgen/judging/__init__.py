"""Human evaluation: a blind sheet of questions to be rated by people, and what the filled sheets say."""

from .answers import Answers, read
from .results import Result, evaluate, shown
from .sheet import make
from .systems import gather

__all__ = ["Answers", "Result", "evaluate", "gather", "make", "read", "shown"]
