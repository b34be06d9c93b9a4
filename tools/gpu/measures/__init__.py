"""Commands that measure one thing each, and print what they found as one JSON object."""
