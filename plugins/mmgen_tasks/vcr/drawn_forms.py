"""The names of the forms of drawn questions with choices."""

FORM_NAMES = ("looking", "going", "next to", "color", "side")
