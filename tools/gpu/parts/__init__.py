"""The parts of a run, most important first: what each runs, and its section of the page."""

from .attention import ATTENTION
from .bench import RACING
from .cuts import CUTS
from .epochs import EPOCHS
from .exports import EXPORTS
from .long_tasks import LONG_TASKS
from .main_job import MAIN_JOB
from .orders import ORDERS
from .processes import SEVERAL
from .service import SERVICE
from .suites import SUITES
from .writing import WRITING

PARTS = (SUITES, MAIN_JOB, CUTS, RACING, EPOCHS, WRITING, EXPORTS, ORDERS, SERVICE, SEVERAL, LONG_TASKS, ATTENTION)
