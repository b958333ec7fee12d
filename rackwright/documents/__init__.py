"""YAML files as plain data that knows where each value stands."""
