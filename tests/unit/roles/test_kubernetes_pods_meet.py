"""The script by which pods meet, run with a kubectl that runs commands of pods here."""

from __future__ import annotations

import subprocess

import pytest

from rackwright.render import render

PODS = "".join(f"meet-{n} worker{n} 10.244.{n}.7\n" for n in range(1, 6))
KUBECTL = """\
#!/bin/sh
case "$*" in
*"get namespace"*) exit 1 ;;
*"get pods"*) cat "$(dirname "$0")/pods" ;;
*" exec "*)
    pod=$4
    grep -qxF "$pod" "$(dirname "$0")/dead" && exit 1
    shift 5
    POD=$pod exec "$@" ;;
*) cat >/dev/null ;;
esac
"""
WGET = """\
#!/bin/sh
here=$(dirname "$0")
for url; do :; done
echo "$POD $url" >>"$here/asked"
line="$POD $url"
if grep -qxF "$line" "$here/late"; then grep -vxF "$line" "$here/late" >"$here/late.$$"; mv "$here/late.$$" "$here/late"; exit 1; fi
! grep -qxF "$line" "$here/broken"
"""


@pytest.fixture
def meet(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/sbin:/usr/bin:/sbin:/bin")
    for name, text in (("kubectl", KUBECTL), ("wget", WGET), ("sleep", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    def run(broken="", late="", dead=""):
        for name, text in (("pods", PODS), ("broken", broken), ("late", late), ("dead", dead), ("asked", "")):
            (tmp_path / name).write_text(text)
        script = render(
            "kubernetes/pods-meet.sh.j2", kubectl="kubectl", image="busybox", nodes=[f"worker{n}" for n in range(1, 6)],
            domain="cluster.local", seconds=2, neighbours=3, retry_seconds=0 if broken else 30,
        )  # fmt: skip
        done = subprocess.run(
            ["sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
        )  # fmt: skip
        asked = sorted(set((tmp_path / "asked").read_text().splitlines()))
        return done.returncode, done.stdout.splitlines(), asked

    return run


def test_each_pod_asks_itself_three_others_and_the_service_by_its_names(meet):
    status, printed, asked = meet()
    assert (status, printed) == (0, ["met 5 pods"])
    assert [line.split()[1] for line in asked if line.startswith("meet-4 ")] == [
        "http://10.244.1.7:8080/",
        "http://10.244.2.7:8080/",
        "http://10.244.4.7:8080/",
        "http://10.244.5.7:8080/",
        "http://meet.rackwright-verify.svc.cluster.local/",
        "http://meet/",
    ]
    assert len(asked) == 5 * 6


def test_what_does_not_answer_is_named(meet):
    status, printed, _ = meet(broken="meet-2 http://10.244.3.7:8080/\nmeet-5 http://meet/\n")
    assert status == 3
    assert printed == [
        "a pod on worker2 does not reach the pod on worker3",
        "a pod on worker5 does not reach meet",
    ]


def test_what_answers_late_is_asked_again(meet):
    status, printed, _ = meet(late="meet-1 http://meet/\nmeet-3 http://10.244.5.7:8080/\n")
    assert (status, printed) == (0, ["met 5 pods"])


def test_a_pod_that_runs_no_command_is_named(meet):
    status, printed, _ = meet(dead="meet-4\n")
    assert (status, printed) == (3, ["the pod on worker4 runs no command"])


def test_a_node_without_a_ready_pod_is_named(meet, monkeypatch):
    monkeypatch.setattr(
        "tests.unit.roles.test_kubernetes_pods_meet.PODS", PODS.replace("meet-2 worker2 10.244.2.7\n", "")
    )
    status, printed, _ = meet()
    assert (status, printed) == (3, ["no pod became ready on worker2 within 2 s"])


def test_an_image_without_the_tools_is_no_result(meet, tmp_path):
    (tmp_path / "only").mkdir()
    wrapped = KUBECTL.replace('POD=$pod exec "$@"', f'PATH={tmp_path}/only POD=$pod exec /bin/"$@"')
    (tmp_path / "kubectl").write_text(wrapped)
    status, printed, _ = meet()
    assert (status, printed) == (1, [])
