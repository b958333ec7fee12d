"""The lab's virtual machines for real: one of 1 GiB, with its own kernel, by the commands a user has."""
