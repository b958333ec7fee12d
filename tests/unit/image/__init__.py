"""Images: what goes into them, what they are written as, and what is refused."""
