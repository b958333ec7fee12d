"""Tests of what lies below the applications of a node, each on a rack of its own."""
