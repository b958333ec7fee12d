"""The documentation as a site: pages of roles and commands made from the code, links, navigation.

`make docs` builds it from docs/site/mkdocs.yml, which loads `hooks.py`. Nothing here is part of the wheel.
"""
