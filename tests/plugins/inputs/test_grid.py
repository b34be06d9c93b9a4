"""Names of a grid's cells."""

from mmgen_inputs.grid import GridEmbedder


def test_cells_are_named_row_by_row():
    names = GridEmbedder.slot_names(None, 4)
    assert names == ["row 1, column 1", "row 1, column 2", "row 2, column 1", "row 2, column 2"]
