"""efa: Amazon's Elastic Fabric Adapter: its driver and libfabric by Amazon's installer, at a declared version and digest.

The installer is one tarball, from Amazon or the site's `mirrors.files`; it installs packages and writes its version to
/opt/amazon/efa_installed_packages, which is what an apply compares. Sources: the installer's script and its use in AWS
ParallelCluster's cookbook and other public setups, read 2026-11-25.
"""
