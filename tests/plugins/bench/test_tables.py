"""Tables of measurements."""

from mmgen_bench import tables
from mmgen_bench.flops import NAIVE, OURS, Work
from mmgen_bench.timing import Result

SHAPE = {"layers": 1, "width": 16, "vocabulary": 50, "regions": 2, "caption": 3}
SETTINGS = {"shape": SHAPE, "tokens": 4, "batch": 2, "precision": "fp32", "compile": False, "accelerator": None}
SETTINGS |= {"processor": "a processor", "threads": 1, "torch": "2", "transformers": "5", "rounds": 1}
SETTINGS |= {"systems": [OURS, NAIVE]}


def test_a_terminal_shows_the_table_of_markdown_and_the_notes():
    results = [Result("K = 1", name, (seconds,), Work(10, 100), 1) for name, seconds in ((OURS, 1.0), (NAIVE, 2.5))]
    header, rule, ours, naive, empty, *notes = tables.plain(results, SETTINGS, "per text").splitlines()
    assert ours.startswith("| K = 1 | ours   | 1,000.0 |") and naive.startswith("|       | naive  | 2,500.0 |")
    assert rule.startswith("|-------|--------|--------:|") and not empty
    assert {len(line) for line in (header, rule, ours, naive)} == {len(header)}
    markdown = tables.markdown(results, SETTINGS, "per text").splitlines()
    assert notes[0].startswith("1 layer, 16 wide, 50 words")
    assert " median of 1 round, " in notes[2] and notes[1].startswith("a processor, 1 thread; torch 2")
    assert " * |" in naive and r" \* |" in markdown[3]  # an asterisk must not begin emphasis
    assert markdown[5:] == [f"- {note}".replace("*", r"\*") for note in notes]
