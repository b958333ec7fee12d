"""cuda: the locked CUDA toolkit, found by login shells, and never newer than the driver can run."""
