"""Tests of the lab's virtual BMCs."""
