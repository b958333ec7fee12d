"""From a cluster file to the resolved cluster, or every mistake in the file at once."""
