"""The engine and the drift check, on a small rack whose roles change things in milliseconds."""
