"""A cluster as a picture: racks, nodes and switches as declared and, if asked for, with what is known of them now."""
