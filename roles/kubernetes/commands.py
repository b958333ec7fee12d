"""Shell that makes a node a member of the cluster and keeps its static pods as declared. Pure functions."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from rackwright.kubernetes.commands import AS_DECLARED, KUBECTL
from rackwright.render import render
from rackwright.roles.kubernetes import kubeadm, taints, texts
from rackwright.roles.kubernetes.releases import release_of

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster, Node
    from rackwright.roles.kubernetes.options import KubernetesOptions

MEMBER = "member"
_NODE = "kubectl --kubeconfig /etc/kubernetes/kubelet.conf --request-timeout=10s"
_PHASES = f"kubeadm init phase control-plane all --config {kubeadm.CONFIG}"


def membership(node: Node) -> str:
    """Prints `member`, or what is wrong; a node whose API does not answer stays a member."""
    return f"""
[ -e {texts.JOINED} ] && [ -s {texts.ETC}/kubelet.conf ] || {{ echo 'not a member'; exit; }}
answer=$(timeout 15 {_NODE} get node {quote(node.name)} -o name 2>&1) && {{ echo {MEMBER}; exit; }}
case $answer in
*NotFound*) echo 'its node object was deleted' ;;
*) echo {MEMBER} ;;
esac
"""


def join(options: KubernetesOptions, cluster: Cluster, node: Node) -> str:
    """Joins the node, or makes the cluster; the kubeconfig for it comes by standard input."""
    others = [other for other in options.control_planes(cluster) if other.name != node.name]
    before = [other.name for other in _before(options, cluster, node)]
    first = options.control_planes(cluster)[0]
    return render(
        "kubernetes/join.sh.j2",
        node=node.name,
        makes=first.name == node.name,
        control_plane=options.runs_control_plane(node),
        endpoint=options.endpoint(cluster),
        port=options.control_plane.port,
        others=[(other.name, cluster.management_address(other)) for other in others],
        before=before,
        etcd_pauses=not release_of(options.version).joins_etcd_as_learner,
        join_config=texts.JOIN,
        init_config=kubeadm.CONFIG,
        joined=texts.JOINED,
        attempt=texts.ATTEMPT,
        lock=texts.LOCK,
        kubeconfig=kubeadm.JOIN_KUBECONFIG,
        etc=texts.ETC,
        keep_taints=taints.keep_own(options, cluster, node) if options.runs_control_plane(node) else "",
        pki_files="ca.crt ca.key sa.key sa.pub front-proxy-ca.crt front-proxy-ca.key etcd/ca.crt etcd/ca.key",
        save=_save(options, cluster, node) if options.runs_control_plane(node) else "",
    )


def _before(options: KubernetesOptions, cluster: Cluster, node: Node) -> tuple[Node, ...]:
    """Control-plane nodes that join before this one: etcd takes one new member at a time."""
    planes = options.control_planes(cluster)
    names = [one.name for one in planes]
    return planes[: names.index(node.name)] if node.name in names else ()


def manifests(options: KubernetesOptions, cluster: Cluster, node: Node) -> str:
    """Prints `as declared`, or a line for each manifest of a static pod that differs."""
    return f"""
[ -e {texts.JOINED} ] || {{ echo {quote(AS_DECLARED)}; exit; }}
[ "$(cat {texts.APPLIED} 2>/dev/null)" = {kubeadm.digest(options, cluster, node)} ] || {{ echo 'made from other settings'; exit; }}
cd {texts.MANIFESTS} || exit 1
for one in *.yaml; do
    cmp -s "$one" {texts.ETC}/manifests/"$one" || echo "$one was changed"
done | grep . || echo {quote(AS_DECLARED)}
"""


def write_manifests(options: KubernetesOptions, cluster: Cluster, node: Node) -> str:
    """New manifests where the settings changed, else those that kubeadm wrote before."""
    upload = ""
    if options.control_planes(cluster)[0].name == node.name:
        upload = f"""
    kubeadm init phase upload-config kubeadm --config {kubeadm.CONFIG}
    kubeadm init phase addon all --config {kubeadm.CONFIG}
    {KUBECTL} -n kube-system rollout restart daemonset/kube-proxy"""
    return f"""
set -eu
if [ "$(cat {texts.APPLIED} 2>/dev/null)" = {kubeadm.digest(options, cluster, node)} ]; then
    cp -f {texts.MANIFESTS}/*.yaml {texts.ETC}/manifests/
else
    {_PHASES} >/dev/null{upload}
fi
{_save(options, cluster, node)}
{_READY}
"""


_READY = f"""\
for i in $(seq 90); do
    sleep 2
    ! {KUBECTL} get --raw=/readyz >/dev/null 2>&1 || exit 0
done
echo 'kube-apiserver was not ready within 180 s; see: journalctl -u kubelet' >&2
exit 1"""


def _save(options: KubernetesOptions, cluster: Cluster, node: Node) -> str:
    return f"""\
mkdir -p -m 700 {texts.MANIFESTS}
cp -f {texts.ETC}/manifests/*.yaml {texts.MANIFESTS}/
echo {kubeadm.digest(options, cluster, node)} >{texts.APPLIED}"""


def running_version(options: KubernetesOptions) -> str:
    """Prints the version of the node's kube-apiserver; the declared one on a node that has not joined."""
    return f"""
[ -e {texts.JOINED} ] || {{ echo {options.version}; exit; }}
sed -n 's,^ *image: .*/kube-apiserver:v\\([0-9.]*\\).*,\\1,p' {texts.ETC}/manifests/kube-apiserver.yaml
"""


def upgrade(options: KubernetesOptions, cluster: Cluster, node: Node) -> str:
    """One patch or minor release: the first node upgrades the cluster, the others follow it."""
    version = f"v{options.version}"
    ask = f"{KUBECTL} -n kube-system get configmap kubeadm-config"
    if options.control_planes(cluster)[0].name == node.name:
        step = f"kubeadm upgrade apply {version} --yes"
    else:
        step = f"""\
for i in $(seq 120); do
    {ask} -o yaml | grep -q 'kubernetesVersion: {version}$' && break
    [ "$i" -lt 120 ] || {{ echo 'the first control-plane node is not upgraded to {version}' >&2; exit 1; }}
    sleep 5
done
kubeadm upgrade node"""
    return f"set -eu\n{texts.LOCK}\n{step}\n{_save(options, cluster, node)}\n"


def labelled(options: KubernetesOptions, node: Node) -> str:
    """Prints the node's name where it has every declared label."""
    wanted = ",".join(f"{key}={value}" for key, value in texts.labels(options, node).items())
    return (
        f"timeout 15 {_NODE} get nodes --field-selector metadata.name={quote(node.name)} "
        f"-l {quote(wanted)} -o name | grep . || echo differ"
    )


def label(options: KubernetesOptions, node: Node) -> str:
    """Sets them, as the node itself: the API lets it change no other node."""
    wanted = " ".join(quote(f"{key}={value}") for key, value in texts.labels(options, node).items())
    return f"""
for i in $(seq 60); do
    {_NODE} label node {quote(node.name)} --overwrite {wanted} && exit 0
    sleep 2
done
exit 1
"""


LEAVE = f"""\
set -u
{texts.LOCK}
systemctl disable --now {texts.KUBELET} 2>/dev/null
kubeadm reset --force >/dev/null 2>&1
ctr -n k8s.io tasks ls -q 2>/dev/null | while read -r one; do ctr -n k8s.io tasks kill -s KILL "$one"; done
rm -rf {texts.JOINED} {texts.ATTEMPT} {texts.ETC}/kubelet.conf {texts.ETC}/pki {texts.ETC}/manifests /etc/cni/net.d/10-rackwright.conflist
[ ! -e {texts.ETC}/kubelet.conf ]
"""
"""Takes Kubernetes off a node that has another workload now; images and packages stay."""
