"""Two slurmctld with their state on an NFS mount, on virtual machines."""
