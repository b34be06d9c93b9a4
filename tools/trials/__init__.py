"""Trials: what mmgen promises, tried again and again. One command for all of them, on a processor, beside other work.

    python -m tools.trials kills        kill runs, writers and services, and start them again
    python -m tools.trials processes    start several processes that train together, and end them
    python -m tools.trials fuzz         feed damaged files to everything that mmgen reads
    python -m tools.trials suite        run the tests again and again beside a load
    python -m tools.trials installs     install the last commit on every Python
    python -m tools.trials week         do what three people do in a week

`--again` runs the cases again that the journal says are wrong, so that what is mended leaves a record.

A trial is a module of `PIECES` with what `piece.Piece` describes. A case is a function of the seed and of its number.
Every case is a line of JSON in a journal, so a second call goes on where the last one ended."""

PIECES = ("kills", "processes", "fuzz", "suite", "installs", "week")
