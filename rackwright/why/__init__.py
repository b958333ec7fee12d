"""Explains the state of one node: scheduler, health, declaration, changes, kernel log, next step."""
