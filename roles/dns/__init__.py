"""Name resolution: /etc/resolv.conf of every node, and a caching resolver on the heads."""
