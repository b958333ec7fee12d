"""rackwright's facts: each answers a complete question with one plain command."""
