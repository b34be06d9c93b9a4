"""The parts of a run, in order of worth: what each runs, and what the page says of it."""

from .bench import RACING
from .cuts import CUTS
from .epochs import EPOCHS
from .main_job import MAIN_JOB
from .processes import SEVERAL
from .suites import SUITES
from .writing import WRITING

PARTS = (SUITES, MAIN_JOB, CUTS, RACING, EPOCHS, WRITING, SEVERAL)
