"""What runs on a node and reads it: standard library only, Python 3.9 or newer, sent as one text."""
