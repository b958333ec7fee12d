"""Users of a directory: a real slapd in the rack, and SSSD against it."""
