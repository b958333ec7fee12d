"""The engine's faults, one by one, on a small rack with quick roles."""
