"""X.509 without a node: the site's CA, the certificates it issues, and the validation of a node's certificate."""
