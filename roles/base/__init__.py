"""What every node has before anything else: a name, /etc/hosts, locale, timezone, packages, mirrors."""
