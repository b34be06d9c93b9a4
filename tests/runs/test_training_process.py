"""A process that trains steps for a run: its lines go to the run's process."""

from mmgen.runs.training_process import Spoken


def test_lines_are_sent(capsys):
    sent = []
    spoken = Spoken(sent.append)
    spoken.say("built on the spot")
    with spoken.task("training", 2, "pairs") as advance:
        advance(2)
    assert sent[0] == "built on the spot" and sent[1].startswith("training ") and "2/2" in sent[1]
    assert len(sent) == 2 and capsys.readouterr() == ("", "")
