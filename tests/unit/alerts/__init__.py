"""Tests of the alert and recording rules."""
