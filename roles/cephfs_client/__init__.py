"""cephfs_client: CephFS by the kernel's own client, with a key that the site supplies.

The kernel mounts; ceph-common brings mount.ceph, which reads the key from a file, so that it appears in no unit and no
process list. Monitors, user and filesystem are given with each mount, so no /etc/ceph/ceph.conf is written: one
node may mount filesystems of several Ceph clusters.
"""
