"""mysqld_exporter: figures of the MariaDB server behind Slurm's accounting.

It logs in over the socket as the Unix user that it runs as, so that there is no password to keep. That user may see the
server's state (PROCESS) and not one row of a table: who takes over the exporter reads no accounting records.
"""
