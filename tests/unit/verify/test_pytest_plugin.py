"""The checks under plain pytest and testinfra, in a process of their own."""

import os
import subprocess
import sys
import textwrap

import pytest

ROLE = {
    "__init__.py": "",
    "options.py": """
        from rackwright.model.options import RoleOptions
        class AlphaOptions(RoleOptions):
            pass
    """,
    "verify.py": """
        from rackwright.claims.check import Check, NotInScope, Undetermined, Warned, fail
        from rackwright.model.platforms import Capability
        def warned(context):
            raise Warned("nearly")
        CHECKS = (
            Check("files exist", lambda c: str(c.host.file("/etc/passwd").exists)),
            Check("it fails", lambda c: fail("not so")),
            Check("nobody knows", lambda c: c.output("no-such-tool")),
            Check("it warns", warned),
            Check("the clock is set", lambda c: "", needs=frozenset({Capability.CLOCK})),
        )
    """,
}

CLUSTER = """
version: 1
cluster: {name: t, domain: t.test}
defaults: {os: debian-13, platform: container, sku: lab-node, lab: {cpus: 2, memory_mib: 2048}}
networks:
  management: {purpose: management, cidr: 10.9.0.0/24}
ssh: {user: ops}
nodes:
  - nodes: local
    roles: [head]
    addresses: {management: 10.9.0.10}
roles:
  alpha: {}
"""


@pytest.fixture
def run(tmp_path):
    """Run pytest with the plugin on `local://`, a role `alpha` added to rackwright's."""
    role = tmp_path / "extra" / "alpha"
    role.mkdir(parents=True)
    for name, text in ROLE.items():
        (role / name).write_text(textwrap.dedent(text))
    (tmp_path / "more_roles.py").write_text(
        f"import rackwright.roles\nrackwright.roles.__path__.append({str(tmp_path / 'extra')!r})\n"
    )
    (tmp_path / "cluster.yaml").write_text(CLUSTER)

    def pytest_run(*arguments):
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "more_roles",
            "-p",
            "rackwright.pytest_plugin",
        ]
        rest = ["--pyargs", "rackwright.verify.pytest_checks", "-rA", "-p", "no:cacheprovider", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(
            [*command, *rest],
            check=False,
            capture_output=True,
            text=True,
            timeout=240,
            cwd=tmp_path,
            env=environment,
        )
        return done.returncode, done.stdout + done.stderr

    return pytest_run


def test_every_status(run):
    status, out = run("--cluster", "cluster.yaml", "--hosts=local://")
    assert status == 1, out
    assert "2 failed, 2 passed, 1 skipped" in out
    assert "FAIL: not so" in out
    assert "UNKNOWN: cannot run `no-such-tool`" in out
    assert "local: it warns: nearly" in out
    assert "a container shares its host's clock" in out


def test_mistakes_are_usage_errors(run):
    assert "need --cluster FILE" in run("--hosts=local://")[1]
    status, out = run("--cluster", "none.yaml", "--hosts=local://")
    assert status == 4
    assert "none.yaml" in out
