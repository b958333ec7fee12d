"""munge: one secret key on every node, so that Slurm's daemons believe each other."""
