"""Answers for the distributions' own installers, where a site declares one in place of an image (docs/installers.md)."""
