"""Applies the dcgm_exporter role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.operations import files
from rackwright.operations.exporters import install_exporter, run_exporter
from rackwright.roles.dcgm_exporter import texts
from rackwright.roles.dcgm_exporter.options import DcgmExporterOptions


@deploy("dcgm_exporter")
def dcgm_exporter(options: DcgmExporterOptions) -> None:
    """The package as paired with DCGM, its fields, which job has which GPU, the unit."""
    site = site_of()
    cluster, node = site.cluster, site.node
    if not options.serves(node):
        return
    install_exporter(
        options,
        texts.arguments(cluster, node, options),
        packages_at=options.package(cluster, node),
    )
    fields = texts.fields_path(options)
    files.file(name="Write the list of DCGM fields", path=fields, content=texts.fields(options))
    for path, script in host.loop(texts.hooks(node, options).items()):  # type: ignore[no-untyped-call]
        if script is None:
            files.absent(name=f"Remove {path}", path=path)
        else:
            files.file(name=f"Write {path}", path=path, content=script, mode="755", validate="sh -n %s")
    run_exporter(options, restart_on=(fields,))
