"""mariadb: the database behind slurmdbd, on the primary head, reachable from there only."""
