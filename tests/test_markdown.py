"""Tables in Markdown: aligned, and no cell leaves its column."""

from mmgen.markdown import number, table


def test_columns_stand_under_one_another():
    assert table([["step", "value"], ["both", "87.50"], ["image_frozen", "-"]]).split("\n") == [
        "| step         | value |",
        "|--------------|------:|",
        "| both         | 87.50 |",
        "| image_frozen |     - |",
    ]
    assert table([["step", "run", "n"], ["a", "b", "10"]], texts=2).split("\n") == [
        "| step | run |  n |",
        "|------|-----|---:|",
        "| a    | b   | 10 |",
    ]


def test_a_cell_keeps_its_line_and_column():
    assert table([["a|b"], ["two\nlines"]]).split("\n") == ["| a\\|b      |", "|-----------|", "| two lines |"]


def test_numbers():
    assert [number(2 / 3), number(None)] == ["0.67", "-"]
