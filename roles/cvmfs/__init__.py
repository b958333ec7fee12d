"""CernVM-FS: software repositories such as EESSI's below /cvmfs, mounted by systemd at their first use, cached on the node."""
