"""site_ca: the site's certificate authority, for services that speak TLS, and trust in it on every node.

The CA's key is in the secrets store and reaches no node. Certificates are issued where the command runs: a new key with
each, written to the node and kept nowhere else. One is issued again when it expires soon, has other names or
another CA, or its key does not fit; the unit that reads it restarts because the file is newer. Roles declare what
they need (`NeedsCertificates`) and issue it in their own deploy, once the user that reads the key exists.

The control node's clock decides when a certificate is due: a node whose clock is off would renew all of them, or none.
"""
