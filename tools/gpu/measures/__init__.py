"""Commands that each measure one thing, and print the results as one JSON object."""
