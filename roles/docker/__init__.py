"""docker: the engine, its settings and who may use it.

Who is in the group docker is root on the node, in one command: the members are declared, all of them,
and verify names them. Users of a shared cluster are better served by podman, apptainer or enroot.

Docker writes firewall rules of its own: it sets the policy of FORWARD to DROP, masquerades the ranges of
its networks, and a published port (`-p`) is open to the world past firewalld and ufw. `iptables: false`
turns that off; containers then have no way out of the node but the host's network.

A change of daemon.json is reloaded where docker takes it while it runs (docs.docker.com, "Configuration
reload behavior"), else the daemon is restarted; with live_restore containers live through that. Which of
the two is due is told by a copy of the file that each start of the daemon leaves in /run, so neither an
interrupted run nor a hand-made restart is ever mistaken.

A new data_root starts empty: images, volumes and containers stay behind in the old one.
"""
