"""What every node needs first: hostname, /etc/hosts, locale, timezone, packages, mirrors."""
