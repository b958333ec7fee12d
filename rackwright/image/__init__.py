"""Images: a group's packages installed once into a root tree, so that a node's first run only configures."""
