"""munge: one secret key on every node, so that Slurm's daemons can authenticate each other."""
