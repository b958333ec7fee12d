"""What is known of every node now: scheduler, last health check, drift, alerts; asked side by side, within time limits."""
