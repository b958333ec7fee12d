"""Applies the cuda role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.lock.cuda_home import cuda_home
from rackwright.lock.for_roles import component, group_for
from rackwright.operations import files, packages, settings
from rackwright.render import render
from rackwright.roles.cuda.options import CudaOptions, tools

PROFILE = "/etc/profile.d/rackwright-cuda.sh"


@deploy("cuda")
def cuda(options: CudaOptions) -> None:
    """The toolkit's packages as locked, the default among releases side by side, the login shells' path."""
    site = site_of()
    group = group_for(site)
    packages.installed(
        name="Install the CUDA toolkit as locked", packages=component(group, *options.parts), hold=True
    )
    if group.source != "distribution":
        settings.setting(
            name="Make the locked toolkit the default",
            target="/usr/local/cuda",
            read="readlink -f /usr/local/cuda",
            want=cuda_home(group),
            write=f"update-alternatives --set cuda {cuda_home(group)}",
        )
    if options.profile:
        files.file(
            name="Add the toolkit to PATH in login shells",
            path=PROFILE,
            content=render("cuda/profile.sh.j2", home=cuda_home(group), tools=tools(group)),
        )
    else:
        files.absent(name="Leave PATH to environment modules", path=PROFILE)
