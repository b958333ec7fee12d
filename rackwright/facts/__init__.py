"""Facts of ours: each answers a whole question in one plain command."""
