"""The fabric that is there, compared with the one that is declared: discovery, its readers, and what differs."""
