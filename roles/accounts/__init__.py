"""accounts: users and groups of an LDAP directory, looked up and cached by SSSD.

Users of `access` stay: the node looks into its files first, and a directory can neither replace a declared user nor have
a number of theirs. Servers are asked over TLS alone. sshd takes keys from the directory, as it takes no passwords, and
asks the directory about its own users only, so that a dead directory delays no login of an administrator.

Active Directory is asked as an LDAP server with its own schema. A join (adcli, a keytab and Kerberos) is not made:
SSSD's provider `ad` would need one for each node, and rights to create computer accounts.
"""
