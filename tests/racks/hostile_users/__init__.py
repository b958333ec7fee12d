"""What an unprivileged user of a node can do to it, to others and to the head: tried as that user."""
