"""registry_cache: registries on the primary head, so that a thousand nodes pull an image once.

An instance with an `upstream` is a pull-through cache: it fetches what is asked for and keeps it, and it
takes no pushes. One without is a registry of the site's own. Nodes use the cache through the cluster's
`mirrors.containers`, which every runtime role writes into its own settings.

distribution (docker-registry) serves one upstream per process, so each instance has its own unit. The
package's unit, which listens on every address, is masked. A cache asks its upstream when it starts and dies
of no answer; systemd tries again every two seconds. Release 2.8 keeps what it fetched for seven days
and has no setting for it.
"""
