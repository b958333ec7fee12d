"""Plan and apply as one process sees them: session and workers, waves, journal, the lock of a run."""
