"""What differs between operating-system families and their releases, and only here.

`family` and `release` declare what roles may ask, `debian` and `el` are the tables, `known` looks names up.
"""
