"""Deliberate faults in a lab rack: each must fire its alert, notify the operator, and resolve after healing."""
