"""init: writes the folder of a site, with everything that a cluster needs to be kept in git."""
