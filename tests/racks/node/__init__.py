"""Tests of the layers below a node's applications, each on a separate rack."""
