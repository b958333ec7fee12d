"""The probe that reads a node: standard library only, Python 3.9 or newer, sent to the node as one text."""
