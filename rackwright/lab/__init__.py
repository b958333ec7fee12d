"""The rack on a laptop: systemd-nspawn nodes with a real init, sshd and apt, joined by a private network."""
