"""Examples for the public suites, and what a suite finds."""

import unittest

from mmgen.errors import MmgenError
from mmgen.examples import Example

CAPTIONS = [Example("one", {"caption": "a red cat"}), Example("two", {"caption": "a blue boat near the water"})]


def failures(suite):
    """What a suite finds: test -> message."""
    messages = {}
    for name in filter(lambda name: name.startswith("test_"), dir(suite)):
        try:
            getattr(suite(), name)()
        except unittest.SkipTest:
            continue
        except Exception as error:
            known = isinstance(error, AssertionError | MmgenError)
            messages[name] = str(error) if known else f"{type(error).__name__}: {error}"
    return messages
