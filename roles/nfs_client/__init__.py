"""Mounts the filesystems of kind nfs and vast that the cluster file declares.

Only NFSv4.1 and later is used, so that rpcbind and rpc.statd are masked and a client listens on no port.
"""
