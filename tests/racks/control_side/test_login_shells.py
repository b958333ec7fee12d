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
    """Both greet; the worker has shells and a German locale, the head is set to a locale that it does not have."""
    install = "DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install zsh fish locales"
    rack.on("worker1", f"cp /etc/environment /root/; {install}; localedef -i de_DE -f UTF-8 de_DE.UTF-8", 600)
    rack.on("head1", "cp /etc/environment /root/")
    for node in ("head1", "worker1"):
        rack.on(node, _GREETINGS)
    yield rack
    for node in ("head1", "worker1"):
        rack.on(node, "cp /root/environment /etc/environment; usermod -s /bin/bash rack")
        rack.on(node, "cd ~rack; mv bashrc.before .bashrc; rm -r .zshenv .config")


@pytest.mark.parametrize("shell", ["/bin/bash", "/usr/bin/zsh", "/usr/bin/fish"])
def test_a_greeting_and_another_shell_change_nothing(german: Site, shell: str):
    german.on("worker1", f"usermod -s {shell} rack")
    assert operations(german.plan(0, full=True)) == set()
    german.on("worker1", "rm /etc/ssh/sshd_config.d/00-rackwright.conf; sed -i s/worker1/x/ /etc/hosts")
    assert {(node, role) for node, role, _ in operations(german.plan(2))} == {
        ("worker1", "base"),
        ("worker1", "access"),
    }
    assert "holds no lock" not in german.apply().err, "the head's greeting was taken for its answer"
    assert operations(german.plan(0)) == set()
    assert operations(german.plan(0, full=True)) == set()
