"""X.509 without a node: the site's CA, the certificates it issues, and what is wrong with one that a node has."""
