"""Images, built for real: what is in them, what is not, and what a build leaves on this machine: nothing."""
