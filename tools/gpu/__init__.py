"""The first minutes on a GPU: resumable parts in order of worth, and a Markdown page of what they found.

    python -m tools.gpu                  every part that is not done yet, each 8 minutes at most
    python -m tools.gpu --list           the parts and their commands; needs no GPU
    python -m tools.gpu --stand-in       every part with tiny sizes on the processor; its figures mean nothing

`parts/` says what is run, `measures/` holds the commands that measure, `suite/` the tests that run on the GPU.
"""
