"""Paints houses and other objects on a `Brush`, one function per kind."""

from __future__ import annotations

import math

from .brush import CREAM, GLASS, GOLD, INK, PINK, ROOF, STEEL, WHITE, WOOD, Brush, mix


def kite(b: Brush) -> None:
    """A diamond in four panels, with a tail of bows."""
    b.curve(INK, 0.025, (0.5, 0.66), (0.62, 0.78), (0.42, 0.88), (0.52, 0.98))
    for x, y in ((0.58, 0.78), (0.45, 0.9)):
        b.shape(b.main, (x, y), (x - 0.17, y - 0.06), (x - 0.17, y + 0.06))
        b.shape(b.main, (x, y), (x + 0.17, y - 0.06), (x + 0.17, y + 0.06))
    top, left, right, foot, middle = (0.5, 0.0), (0.02, 0.28), (0.98, 0.28), (0.5, 0.7), (0.5, 0.28)
    b.shape(b.main, top, left, foot, right)
    b.shape(b.trim, top, middle, right)
    b.shape(b.trim, foot, middle, left)
    b.line(INK, 0.022, top, foot)
    b.line(INK, 0.022, left, right)


def house(b: Brush) -> None:
    """Walls of its colour, a dark roof, a chimney, a door and two windows."""
    b.box(b.dark, 0.7, 0.04, 0.84, 0.3)
    b.box(b.main, 0.1, 0.4, 0.9, 1.0)
    b.shape(ROOF, (0.0, 0.46), (0.5, 0.02), (1.0, 0.46))
    b.shape(b.main, (0.26, 0.42), (0.5, 0.2), (0.74, 0.42))
    b.oval(GLASS, 0.5, 0.33, 0.055)
    for x in (0.18, 0.64):
        b.box(WHITE, x, 0.54, x + 0.19, 0.74)
        b.box(GLASS, x + 0.02, 0.56, x + 0.17, 0.72)
        b.line(WHITE, 0.016, (x + 0.095, 0.55), (x + 0.095, 0.73))
    b.box(WOOD, 0.41, 0.62, 0.59, 1.0, 0.02)
    b.oval(GOLD, 0.55, 0.82, 0.02)


def tent(b: Brush) -> None:
    """A ridge tent, seen from the front, with a flag."""
    b.line(WOOD, 0.03, (0.5, 0.0), (0.5, 0.2))
    b.shape((214, 60, 70), (0.5, 0.0), (0.64, 0.06), (0.5, 0.11))
    b.shape(b.main, (0.5, 0.14), (0.0, 1.0), (1.0, 1.0))
    b.shape(b.light, (0.5, 0.14), (0.0, 1.0), (0.16, 1.0))
    b.shape(b.light, (0.5, 0.14), (1.0, 1.0), (0.84, 1.0))
    b.shape(INK, (0.5, 0.42), (0.32, 1.0), (0.68, 1.0))
    b.shape(b.trim, (0.5, 0.42), (0.32, 1.0), (0.4, 1.0))


def ball(b: Brush) -> None:
    """A beach ball: six panels, every other one white."""
    b.oval(b.main, 0.5, 0.5, 0.5)
    for start in (10, 130, 250):
        b.slice(WHITE, 0.5, 0.5, 0.5, 0.5, start, start + 48)
    b.oval(b.dark, 0.5, 0.5, 0.13)
    b.oval(mix(b.main, WHITE, 0.65), 0.3, 0.22, 0.07, 0.05)


def umbrella(b: Brush) -> None:
    """Open, scalloped, with a hooked handle."""
    b.curve(WOOD, 0.05, (0.5, 0.4), (0.5, 0.86), (0.56, 0.97), (0.66, 0.94), (0.68, 0.86))
    b.line(STEEL, 0.035, (0.5, 0.0), (0.5, 0.1))
    b.slice(b.main, 0.5, 0.56, 0.5, 0.5, 180, 360)
    for x in (0.125, 0.375, 0.625, 0.875):
        b.oval(b.main, x, 0.555, 0.125, 0.06)
    b.blob(b.light, (0.5, 0.06), (0.36, 0.2), (0.25, 0.56), (0.5, 0.56))
    b.blob(b.dark, (0.52, 0.06), (0.76, 0.22), (0.99, 0.55), (0.75, 0.56))


def chair(b: Brush) -> None:
    """An armchair with a cushion and wooden feet."""
    for x in (0.14, 0.76):
        b.box(WOOD, x, 0.84, x + 0.1, 1.0, 0.02)
    b.box(b.main, 0.14, 0.0, 0.86, 0.8, 0.16)
    for x in (0.32, 0.5, 0.68):
        b.oval(b.dark, x, 0.2, 0.025)
        b.oval(b.dark, x, 0.36, 0.025)
    b.box(b.dark, 0.1, 0.6, 0.9, 0.9, 0.04)
    b.box(b.light, 0.18, 0.5, 0.82, 0.66, 0.06)
    for x in (0.0, 0.8):
        b.box(b.main, x, 0.38, x + 0.2, 0.9, 0.09)
        b.oval(b.light, x + 0.1, 0.47, 0.06)


def drum(b: Brush) -> None:
    """Gold rims, white ropes in a zigzag, a pale skin and two sticks."""
    b.line(WOOD, 0.045, (0.05, 0.0), (0.46, 0.24))
    b.line(WOOD, 0.045, (0.95, 0.0), (0.54, 0.24))
    b.box(b.main, 0.05, 0.3, 0.95, 0.86)
    b.oval(GOLD, 0.5, 0.86, 0.48, 0.14)
    b.oval(b.main, 0.5, 0.81, 0.45, 0.13)
    sag = [0.09 * math.sin(math.pi * i / 8) for i in range(9)]  # because the body is round
    zigzag = [(0.06 + 0.11 * i, (0.8 if i % 2 else 0.42) + sag[i]) for i in range(9)]
    b.line(WHITE, 0.028, *zigzag)
    b.oval(GOLD, 0.5, 0.32, 0.48, 0.15)
    b.oval(CREAM, 0.5, 0.3, 0.43, 0.115)


def cup(b: Brush) -> None:
    """A mug with a heart on it, steaming."""
    b.curve(WHITE, 0.05, (0.28, 0.22), (0.22, 0.14), (0.32, 0.08), (0.28, 0.0))
    b.curve(WHITE, 0.05, (0.48, 0.22), (0.42, 0.14), (0.52, 0.08), (0.48, 0.0))
    b.curve(b.dark, 0.1, (0.7, 0.42), (0.94, 0.44), (0.92, 0.72), (0.68, 0.78))
    b.box(b.main, 0.02, 0.28, 0.76, 1.0, 0.12)
    b.box(b.main, 0.02, 0.28, 0.76, 0.6)
    b.oval(b.light, 0.39, 0.29, 0.37, 0.08)
    b.oval((96, 62, 44), 0.39, 0.3, 0.3, 0.055)
    b.blob(b.trim, (0.39, 0.8), (0.25, 0.62), (0.3, 0.52), (0.39, 0.57), (0.48, 0.52), (0.53, 0.62))


def robot(b: Brush) -> None:
    """Boxes, bolts, a screen on its belly and a lamp on its head."""
    b.line(STEEL, 0.04, (0.5, 0.05), (0.5, 0.16))
    b.oval((230, 70, 70), 0.5, 0.05, 0.06, 0.045)
    for x in (0.24, 0.58):
        b.box(STEEL, x, 0.8, x + 0.18, 0.96)
        b.box(INK, x - 0.04, 0.93, x + 0.22, 1.0, 0.03)
    for x in (0.0, 0.86):
        b.box(b.dark, x, 0.44, x + 0.14, 0.74, 0.05)
        b.oval(STEEL, x + 0.07, 0.76, 0.07, 0.05)
    b.box(b.main, 0.14, 0.42, 0.86, 0.84, 0.05)
    b.box(b.main, 0.2, 0.13, 0.8, 0.41, 0.06)
    for x in (0.37, 0.63):
        b.oval(GOLD, x, 0.24, 0.085, 0.064)
        b.oval(INK, x + 0.02, 0.24, 0.04, 0.03)
    b.box(INK, 0.34, 0.335, 0.66, 0.375)
    b.box(GLASS, 0.28, 0.5, 0.72, 0.66, 0.02)
    b.curve(INK, 0.02, (0.31, 0.59), (0.42, 0.59), (0.47, 0.53), (0.53, 0.63), (0.58, 0.58), (0.69, 0.58))
    for x, light in ((0.34, (214, 60, 60)), (0.5, GOLD), (0.66, PINK)):
        b.oval(light, x, 0.74, 0.045, 0.034)
