"""Paints the sun and plants on a `Brush`, one function per kind."""

from __future__ import annotations

import math

from .brush import CREAM, GOLD, INK, LEAF, WHITE, WOOD, Brush, mix


def sun(b: Brush) -> None:
    """Twelve rays and a friendly face."""
    for ray in range(12):
        angle = math.pi * ray / 6
        spread = [(0.36, angle - 0.24), (0.5, angle), (0.36, angle + 0.24)]
        b.shape(b.main, *((0.5 + r * math.cos(a), 0.5 + r * math.sin(a)) for r, a in spread))
    b.oval(b.dark, 0.5, 0.5, 0.345)
    b.oval(b.main, 0.5, 0.5, 0.32)
    b.oval(INK, 0.4, 0.44, 0.035, 0.05)
    b.oval(INK, 0.6, 0.44, 0.035, 0.05)
    b.curve(INK, 0.028, (0.38, 0.58), (0.5, 0.67), (0.62, 0.58))


def tree(b: Brush) -> None:
    """A round crown with fruit-like specks of light."""
    b.shape(WOOD, (0.42, 1.0), (0.45, 0.6), (0.55, 0.6), (0.6, 1.0))
    b.line(WOOD, 0.05, (0.5, 0.75), (0.66, 0.58))
    for x, y, r in ((0.24, 0.46, 0.24), (0.76, 0.46, 0.24), (0.5, 0.54, 0.22), (0.38, 0.24, 0.24), (0.63, 0.24, 0.24)):
        b.oval(b.main, x, y, r, r * 0.95)
    for x, y in ((0.3, 0.56), (0.72, 0.58), (0.54, 0.4)):
        b.slice(b.dark, x, y, 0.13, 0.1, 20, 160)
    for x, y in ((0.3, 0.2), (0.56, 0.14), (0.18, 0.42), (0.7, 0.34), (0.42, 0.4)):
        b.oval(b.light, x, y, 0.075, 0.05)


def flower(b: Brush) -> None:
    """Eight petals around a dark heart, a stem and two leaves."""
    b.line((62, 140, 66), 0.06, (0.5, 0.4), (0.5, 1.0))
    b.blob(LEAF, (0.5, 0.9), (0.3, 0.66), (0.06, 0.68), (0.22, 0.88))
    b.blob(LEAF, (0.5, 0.84), (0.7, 0.62), (0.94, 0.64), (0.78, 0.84))
    petals = ((0, -1), (0.71, -0.71), (1, 0), (0.71, 0.71), (0, 1), (-0.71, 0.71), (-1, 0), (-0.71, -0.71))
    for i, (x, y) in enumerate(petals):
        b.oval(b.light if i % 2 else b.main, 0.5 + 0.32 * x, 0.31 + 0.2 * y, 0.17, 0.11)
    b.oval(b.main, 0.5, 0.31, 0.28, 0.17)
    b.oval((92, 60, 44), 0.5, 0.31, 0.15, 0.095)
    b.oval(GOLD, 0.5, 0.3, 0.09, 0.055)


def mushroom(b: Brush) -> None:
    """A domed, spotted cap on a pale stem."""
    b.blob(CREAM, (0.36, 0.5), (0.64, 0.5), (0.66, 0.8), (0.74, 0.97), (0.5, 1.0), (0.26, 0.97), (0.34, 0.8))
    b.oval(mix(CREAM, WOOD, 0.4), 0.5, 0.57, 0.38, 0.07)
    b.slice(b.main, 0.5, 0.54, 0.5, 0.54, 180, 360)
    b.box(b.main, 0.0, 0.52, 1.0, 0.6, 0.04)
    spots = ((0.5, 0.18, 0.09), (0.24, 0.34, 0.08), (0.76, 0.34, 0.08), (0.48, 0.43, 0.065))
    for x, y, r in (*spots, (0.09, 0.5, 0.045), (0.91, 0.5, 0.045)):
        b.oval(WHITE, x, y, r)
