"""The names of the forms of drawn statements."""

FORMS = (  # about two pictures
    "side",
    "side color",
    "both",
    "both color",
    "neither",
    "one",
    "one color",
    "one with",
    "two",
    "total",
    "more",
    "as many",
    "each side",
    "two colors",
)
SINGLE_FORMS = ("kind", "similar kind", "color", "number", "swapped colors", "swapped sides")  # about one picture
