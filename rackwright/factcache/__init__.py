"""What a node answered: asked in one execution, kept for the next run."""
