"""The image of all daemons: Slurm, munge, MariaDB and sshd of the distribution, without systemd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackwright.model.cluster import Cluster
from rackwright.model.services import PodImage
from rackwright.osfamily.names import names
from rackwright.roles.slurm_on_kubernetes.places import slurm_of

if TYPE_CHECKING:
    from rackwright.roles.slurm_on_kubernetes.options import SlurmOnKubernetesOptions

_BESIDES = ("ca-certificates", "hostname", "iproute2", "procps")
# users come from a ConfigMap, which pods see change, in the files that libnss-extrausers reads
NSSWITCH = """\
passwd: files extrausers
group: files extrausers
shadow: files extrausers
hosts: files dns
services: files
protocols: files
"""


def pod_image(options: SlurmOnKubernetesOptions, cluster: Cluster) -> PodImage:
    """What `rackwright image pods` builds."""
    family = cluster.primary.family
    software = ("munge", "mariadb", "openssh", "extra-users")
    packages = (
        *slurm_of(cluster).pod_packages(cluster),
        *(name for one in software for name in names(family, one).packages),
        *_BESIDES,
        *options.image_packages,
    )
    return PodImage(
        reference=options.reference(cluster),
        packages=tuple(dict.fromkeys(packages)),
        files=(("/etc/nsswitch.conf", NSSWITCH),),
    )
