"""What `--json` prints: a model of each document, and its JSON Schema."""
