"""What differs between operating-system families and their releases, and only here.

`family` and `release` say what there is to know, `debian` and `el` say it, `known` looks it up.
"""
