"""Differences between operating-system families and their releases; they are only here.

`family` and `release` declare what roles may ask, `debian` and `el` are the tables, `known` looks names up.
"""
