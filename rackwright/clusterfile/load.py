"""Loads a cluster file: returns the resolved cluster, or reports every mistake in the file at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rackwright.clusterfile.addresses import assign_addresses
from rackwright.clusterfile.assemble import assemble_nodes
from rackwright.clusterfile.boot_network import read_boot_network
from rackwright.clusterfile.fabrics import read_fabrics
from rackwright.clusterfile.file import ClusterSection, Defaults
from rackwright.clusterfile.firmware import read_firmware
from rackwright.clusterfile.gpu_stack import read_gpu_stack
from rackwright.clusterfile.groups import Group, read_groups
from rackwright.clusterfile.install_disks import check_install_disks
from rackwright.clusterfile.installs import check_installable
from rackwright.clusterfile.machines import Machines
from rackwright.clusterfile.networks import read_networks
from rackwright.clusterfile.outline import read_outline
from rackwright.clusterfile.placement import place_nodes
from rackwright.clusterfile.plaintext_secrets import find_plaintext_secrets
from rackwright.clusterfile.primary import find_primary
from rackwright.clusterfile.report import Report
from rackwright.clusterfile.role_options import RoleOptionsReader
from rackwright.clusterfile.roles import Roles
from rackwright.clusterfile.sections import read_section
from rackwright.clusterfile.site import read_burnin, read_mirrors, read_skus, read_ssh
from rackwright.clusterfile.site_roles import load_site_roles
from rackwright.clusterfile.storage import read_storage
from rackwright.clusterfile.storage_mistakes import check_storage
from rackwright.clusterfile.unprintable import find_unprintable
from rackwright.clusterfile.warnings import find_warnings
from rackwright.clusterfile.workloads import check_workloads
from rackwright.documents.document import Document, read_document
from rackwright.documents.syntax import DocumentError
from rackwright.documents.yaml_data import Data
from rackwright.errors import ClusterFileError, Problem
from rackwright.model.cluster import Cluster
from rackwright.model.options import RoleOptions
from rackwright.model.settings import Waves
from rackwright.site_folder import site_folder


@dataclass(frozen=True)
class Loaded:
    """A valid cluster file: the resolved cluster and its source document."""

    cluster: Cluster
    document: Document
    groups: tuple[Group, ...]
    roles: dict[str, RoleOptions]
    """Options of each role from its section, without group overrides."""
    known: Roles
    """The roles that the file may declare: the shipped ones, and those of the site that it declares."""
    warnings: tuple[Problem, ...] = ()
    """Warnings in file order, if requested."""


def load_cluster(path: Path, *, locked: bool = True) -> Cluster:
    """The resolved cluster. Raises ClusterFileError with every mistake in the file.

    `locked`: also report a lock that roles need but is missing, or that does not match the file.
    """
    return load(path, locked=locked).cluster


def load(path: Path, *, locked: bool = True, warn: bool = False) -> Loaded:
    """The resolved cluster and its document. Raises ClusterFileError as load_cluster does.

    `warn`: also look for settings that are valid but rarely intended.
    """
    try:
        document = read_document(path)
    except DocumentError as error:
        raise ClusterFileError(
            [
                Problem(str(path), item.line, item.column, "", None, item.message, item.hint)
                for item in error.mistakes
            ]
        ) from None
    site = site_folder(path)
    report = Report(document, Roles(site))
    for mistake in document.mistakes:
        report.add_at(mistake)
    load_site_roles(report, site, document.value(("roles",)))
    find_plaintext_secrets(report)
    find_unprintable(report)
    loaded = _read(report, path, locked=locked, warn=warn)
    if len(report) or loaded is None:
        raise ClusterFileError(report.problems(), report.warnings())
    return loaded


def _read(report: Report, path: Path, *, locked: bool, warn: bool) -> Loaded | None:
    """The cluster as far as it can be read; None if something essential is wrong."""
    sections, folder = read_outline(report), path.absolute().parent
    header, skus = _header(report, sections), read_skus(report, sections.get("skus", {}))
    networks = read_networks(report, sections.get("networks", {}))
    defaults = read_section(report, Defaults, sections.get("defaults", {}), ("defaults",)) or Defaults()
    groups = read_groups(report, sections.get("nodes"), defaults, skus)
    complete = len(groups) == len(sections.get("nodes", ()))
    primary = find_primary(report, groups, complete=complete)
    addresses = assign_addresses(report, groups, networks)
    locations = place_nodes(report, groups, networks)
    machines = Machines(report, folder, defaults, networks).read(groups, locations)
    fabrics = read_fabrics(report, sections.get("fabrics", {}), groups, networks, locations, folder)
    storage = read_storage(report, sections.get("storage", {}), groups, networks, addresses)
    ssh = read_ssh(report, sections.get("ssh"), path)
    mirrors = read_mirrors(report, sections.get("mirrors", {}))
    burnin = read_burnin(report, sections.get("burnin", {}))
    boot_network = read_boot_network(report, sections.get("boot_network"), networks)
    firmware = read_firmware(report, sections.get("firmware", {}), skus, folder)
    waves = read_section(report, Waves, sections.get("waves", {}), ("waves",)) or Waves()
    gpu_stack = read_gpu_stack(report, sections.get("gpu_stack"), path)
    options = RoleOptionsReader(report, sections.get("roles", {}))
    if complete:
        options.check_held(groups)
    by_group = [options.for_group(group) for group in groups]
    nodes = assemble_nodes(
        report, groups, addresses, locations, machines, by_group, header, primary, networks, storage
    )
    if header is None or ssh is None or nodes is None or not complete:
        return None
    cluster = Cluster(
        name=header.name,
        domain=header.domain,
        path=path.absolute(),
        sha256=report.document.sha256,
        networks=networks,
        fabrics=fabrics,
        storage=storage,
        ssh=ssh,
        mirrors=mirrors,
        burnin=burnin,
        waves=waves,
        gpu_stack=gpu_stack,
        boot_network=boot_network,
        firmware=firmware,
        nodes=nodes,
    )
    _check(report, cluster, groups, options, locked=locked, warn=warn)
    return Loaded(cluster, report.document, tuple(groups), options.sections, report.roles, report.warnings())


def _check(
    report: Report,
    cluster: Cluster,
    groups: list[Group],
    options: RoleOptionsReader,
    *,
    locked: bool,
    warn: bool,
) -> None:
    """Report mistakes that concern the cluster as a whole."""
    check_storage(report, cluster)
    check_workloads(report, cluster, groups)
    check_installable(report, cluster, groups)
    check_install_disks(report, cluster, groups)
    options.check_against(cluster)
    if locked:
        options.check_lock(cluster)
    if warn:
        find_warnings(report, cluster, groups)
        options.warn_about(cluster)


def _header(report: Report, sections: dict[str, Data]) -> ClusterSection | None:
    if "cluster" not in sections:
        return None
    return read_section(report, ClusterSection, sections["cluster"], ("cluster",))
