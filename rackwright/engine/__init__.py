"""Plan and apply as one process sees them: session and workers, waves, journal, run lock."""
