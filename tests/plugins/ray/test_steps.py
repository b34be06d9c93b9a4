"""Steps as tasks, without a cluster: an engine that hands results out when it is asked."""

from mmgen_ray.steps import StepTasks, train_one

from mmgen.progress import Progress
from mmgen.runs.side_by_side import Event
from mmgen.runs.training_process import Order


class Engine:
    board = "board"

    def __init__(self):
        self.submitted, self.ready = [], {}

    def submit(self, *task):
        self.submitted.append(task)
        return len(self.submitted)

    def results(self, names, seconds):
        return {name: self.ready[task] for task, name in names.items() if task in self.ready}


def order(early):
    values = dict.fromkeys(Order.__dataclass_fields__)
    return Order(**{**values, "early": early})


def test_steps_end_in_the_order_of_their_results():
    engine = Engine()
    tasks = StepTasks(engine, "seed 0")
    tasks.train("first", order(False))
    tasks.train("second", order(True))
    assert [*tasks.training] == ["first", "second"] and [task[0] for task in engine.submitted] == [train_one] * 2
    assert engine.submitted[0][2] == "first" and engine.submitted[0][-2:] == ("board", "seed 0")
    assert tasks.wait(Progress(), needed=False) == []
    engine.ready[2] = (1.5, [Event("on_update", ("second", {}))])
    (ended,) = tasks.wait(Progress(), needed=True)
    assert (ended.step, ended.early, ended.seconds) == ("second", True, 1.5) and [*tasks.training] == ["first"]
