"""The login shell of ssh.user prints a greeting, is zsh or fish, and speaks German: nothing is misread."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.racks.site import Site, operations

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_GREETINGS = """\
cd ~rack; touch .bashrc; cp -n .bashrc bashrc.before
printf 'echo hello from bash\\necho and once more\\n' | cat - bashrc.before >.bashrc
echo 'echo hello from zsh' >.zshenv
mkdir -p .config/fish; echo 'echo hello from fish' >.config/fish/config.fish
chown -R rack: .bashrc .zshenv .config
printf 'LANG=de_DE.UTF-8\\nLC_ALL=de_DE.UTF-8\\nLANGUAGE=de\\n' >>/etc/environment
"""


@pytest.fixture(scope="module")
def german(rack: Site) -> Iterator[Site]:
    """The worker has shells, greetings and a German locale; the head is set to a locale that it does not have."""
    install = "DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install zsh fish locales"
    rack.on("worker1", f"cp /etc/environment /root/; {install}; localedef -i de_DE -f UTF-8 de_DE.UTF-8", 600)
    rack.on("worker1", _GREETINGS)
    rack.on("head1", "cp /etc/environment /root/; echo LC_ALL=de_DE.UTF-8 >>/etc/environment")
    yield rack
    for node in ("head1", "worker1"):
        rack.on(node, "cp /root/environment /etc/environment")
    rack.on("worker1", "usermod -s /bin/bash rack; cd ~rack; mv bashrc.before .bashrc; rm -r .zshenv .config")


@pytest.mark.parametrize("shell", ["/bin/bash", "/usr/bin/zsh", "/usr/bin/fish"])
def test_a_greeting_and_another_shell_change_nothing(german: Site, shell: str):
    german.on("worker1", f"usermod -s {shell} rack")
    assert operations(german.plan(0, full=True)) == set()
    german.on("worker1", "rm /etc/ssh/sshd_config.d/00-rackwright.conf; sed -i s/worker1/x/ /etc/hosts")
    assert {role for _, role, _ in operations(german.plan(2))} == {"base", "tuning"} or operations(
        german.plan(2)
    )
    german.apply()
    assert operations(german.plan(0)) == set()
    assert operations(german.plan(0, full=True)) == set()
