"""What a run would change and what it changed, as plain data."""
