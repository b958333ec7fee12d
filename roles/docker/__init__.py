"""docker: the engine, its settings and who may use it.

Members of the group docker can become root on the node with one command: all of them are declared,
and verify lists them. Users of a shared cluster are better served by podman, apptainer or enroot.

Docker writes its own firewall rules: it sets the policy of FORWARD to DROP, masquerades the ranges of
its networks, and a published port (`-p`) is open to the world past firewalld and ufw. `iptables: false`
turns that off; containers then reach other nodes only by the host's network.

A change of daemon.json is reloaded where docker takes it while it runs (docs.docker.com, "Configuration
reload behavior"), else the daemon is restarted; with live_restore containers survive that. A copy of the
file that each start of the daemon leaves in /run shows which of the two is due, also after an interrupted run
or a manual restart.

A new data_root starts empty: images, volumes and containers stay behind in the old one.
"""
