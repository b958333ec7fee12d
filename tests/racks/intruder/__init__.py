"""What an intruder with root leaves on a node is seen by drift and by verify, taken away by apply, and kept."""
