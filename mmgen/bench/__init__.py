"""The benchmark that anybody can run: this framework beside the paper's own procedure and the decoders of transformers.

Contestants of one shape, random weights, the same made-up data, timed in turn in one process; times stand beside
counted work, so that a gap has to be explained. `docs/performance.md` has what was measured.
"""
