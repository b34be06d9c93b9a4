"""Checks and measurements for the first minutes on a GPU, in resumable parts, most important first, and a Markdown page
of the results.

    python -m tools.gpu                  every unfinished part, at most 8 minutes each
    python -m tools.gpu --list           the parts and their commands; needs no GPU
    python -m tools.gpu --stand-in       every part with tiny sizes on the CPU; the figures mean nothing

`parts/` lists what is run, `measures/` has the commands that measure, `suite/` the tests that run on the GPU."""
