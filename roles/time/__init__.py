"""One clock for the whole cluster: chrony, with the primary head as the site's server."""
