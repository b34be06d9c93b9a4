"""Find and import plugins, and record those that fail."""
