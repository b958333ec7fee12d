"""Lab tests of the roles beside the driver, against a local package repository."""
