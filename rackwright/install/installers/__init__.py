"""Answers for distribution installers, if a site declares one instead of an image (docs/installers.md)."""
