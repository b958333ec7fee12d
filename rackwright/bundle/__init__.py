"""What a site without access to the Internet mirrors for a cluster: listed, resolved to digests, packed, checked."""
