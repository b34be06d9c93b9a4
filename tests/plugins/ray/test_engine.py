"""The room that a cluster has for tasks, which each run on one machine."""

import pytest
from mmgen_ray.engine import room

from mmgen.errors import RunError


def test_tasks_are_counted_by_machine():
    assert room([{"CPU": 4.0}, {"CPU": 3.0}, {}], 2) == (0, 3)
    assert room([{"CPU": 8.0, "GPU": 2.0}, {"CPU": 64.0}, {"CPU": 2.0, "GPU": 4.0}], 1) == (1, 4)


@pytest.mark.parametrize(
    ("machines", "needs", "most"),
    [
        ([{"CPU": 2.0}, {"CPU": 2.0}], "4 CPUs (--threads)", 2),
        ([{"CPU": 2.0, "GPU": 1.0}, {"CPU": 8.0}], "4 CPUs (--threads) and a GPU", 8),
        ([], "4 CPUs (--threads)", 0),
    ],
)
def test_a_task_that_no_machine_can_run_is_refused(machines, needs, most):
    with pytest.raises(RunError) as error:
        room(machines, 4)
    assert str(error.value) == f"no machine of the cluster has {needs}, which a task needs; the largest has {most} CPUs"
