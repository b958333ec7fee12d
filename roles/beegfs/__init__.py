"""beegfs: BeeGFS 7.4 and 8: the client on nodes that mount one, and version 8's servers on nodes that are declared to be.

The client comes as beegfs-client-dkms: its module is built for the declared kernel, and mount units mount. The other
package, beegfs-client, builds for the kernel that is running when its service starts, and that service also mounts, bypassing the
declaration. A server's folder is prepared once, only where it is empty and on a mounted filesystem, and its daemon never
prepares one by itself: a target whose disk is away must not become an empty target.
"""
