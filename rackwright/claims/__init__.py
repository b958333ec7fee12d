"""What roles claim of their nodes: checks, and the claims that many roles share."""
