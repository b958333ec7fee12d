"""The lab's virtual machines for real: one of 1 GiB, with a kernel of its own, by the commands a user has."""
