"""Home directories on declared filesystems of purpose `home`: made on their server, with quotas, and found on every client.

Clients make none: a server squashes their root, and a client whose server is away would write below the mount point.
"""
