"""The brush: shapes in unit coordinates, cut out, outlined and shaded."""

from mmgen_scenes.brush import CREAM, INK, PAINT, Brush, mix, sprite


def test_colours_are_mixed():
    assert mix((0, 0, 0), (100, 50, 10), 0.5) == (50, 25, 5) and mix((1, 2, 3), CREAM, 0.0) == (1, 2, 3)


def test_shapes_are_in_unit_coordinates():
    brush = Brush("red", 100)
    brush.box(CREAM, 0, 0, 0.5, 1)
    left, right = brush.sheet.getpixel((20, 50)), brush.sheet.getpixel((80, 50))
    assert left == (*CREAM, 255) and right == (0, 0, 0, 0)
    assert brush.sheet.getpixel((2, 50))[3] == 0  # the margin for the outline
    brush.oval(brush.main, 0.75, 0.5, 0.1)
    assert brush.sheet.getpixel((71, 50)) == (*PAINT["red"][0], 255)


def test_a_sprite_is_cropped_outlined_and_darker_below():
    sprite_of = sprite(lambda brush: brush.box(brush.main, 0.2, 0, 0.8, 1), "blue", 60)
    assert sprite_of.height > sprite_of.width  # cropped to the painting
    above, below = (sprite_of.getpixel((sprite_of.width // 2, y)) for y in (5, sprite_of.height - 6))
    assert sum(above[:3]) > sum(below[:3]) and above[3] == 255
    edge = sprite_of.getpixel((0, sprite_of.height // 2))
    assert sum(edge[:3]) < sum(INK) + 60
