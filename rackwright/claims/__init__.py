"""Claims that roles make about their nodes: checks, and the claims that several roles share."""
