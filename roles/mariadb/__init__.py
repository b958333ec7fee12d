"""mariadb: the database behind slurmdbd, on one head (the primary unless declared otherwise), reachable by slurmdbd only."""
