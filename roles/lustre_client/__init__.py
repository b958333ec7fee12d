"""lustre_client: Lustre's client at a declared version, its modules for the declared kernel, LNet on declared networks.

The modules fit one kernel, so they are built by DKMS for the kernel that the role `kernel` installs, or come as packages
that were compiled for it; a node whose kernel has none of them ends the run. LNet is configured by /etc/lnet.conf, which
lnet.service imports, and not by module options, since only that file takes several interfaces of one network. Quotas are
the servers' (`lfs setquota`) and not set here.
"""
