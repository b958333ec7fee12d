"""registry_cache: registries on the primary head, so that a thousand nodes pull an image once.

An instance with an `upstream` is a pull-through cache: it fetches and keeps what nodes request, and it
accepts no pushes. One without is the site's own registry. Nodes use the cache through the cluster's
`mirrors.containers`, which every runtime role writes into its own settings.

distribution (docker-registry) serves one upstream per process, so each instance has its own unit. The
package's unit, which listens on every address, is masked. A cache contacts its upstream when it starts and
exits without an answer; systemd restarts it every two seconds. Release 2.8 keeps what it fetched for seven days
and has no setting for it.
"""
