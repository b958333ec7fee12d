"""Checks of the hpc_stack role."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext, NotInScope, Undetermined, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.packages import held_at, installed
from rackwright.facts.settings import Answer
from rackwright.lock.cuda_home import cuda_home
from rackwright.lock.for_roles import group_of, has_stack
from rackwright.lock.versions import upstream
from rackwright.model.cluster import Node
from rackwright.model.interfaces import RunsWorkloadManager
from rackwright.model.types import NodeRole, WorkloadManager
from rackwright.roles.hpc_stack import texts
from rackwright.roles.hpc_stack.options import HpcStackOptions
from rackwright.roles.hpc_stack.reading import library, parse_ldd, parse_ompi_info
from rackwright.roles.hpc_stack.recipes import Recipe, recipes

# As the slurm role's own jobs: a small footprint, and bounded, since a busy node is a healthy one. Memory for two
# processes of Python and MPI where cgroups enforce it, or a third of a small node's.
_JOB = (
    'k=$1; shift; f=$(sinfo -h -n "$1" -o "%R %m" | head -n 1); p=${f%% *}; m=${f##* }; m=${m%%+}; m=$((${m:-0} / 3)); n=$1; shift; '
    'if [ "$m" -gt 1024 ] || [ "$m" -le 0 ]; then m=1024; fi; '
    "exec timeout $((60 * k)) srun -Q -A burnin --immediate=$((20 * k)) -t $((2 * k)) -J rackwright-verify "
    '--mem="$m" -N 1 -n 2 '
    '--overcommit --mpi=pmix ${p:+-p "$p"} -w "$n" "$@"'
)
_NO_ANSWER = ("Requested nodes are busy", "Unable to contact slurm controller", "Connection refused")


def _parts(context: CheckContext[HpcStackOptions]) -> tuple[Recipe, ...]:
    return recipes(context.cluster, context.node, context.options)


def _packages(context: CheckContext[HpcStackOptions]) -> str:
    wanted = texts.packages(context.node, context.options)
    if not wanted:
        raise NotInScope("no package of the distribution is declared")
    return installed(context, sorted(wanted))


def _built(context: CheckContext[HpcStackOptions]) -> str:
    wrong, found = [], []
    for recipe in _parts(context):
        there = context.fact(Answer, recipe.read, may_be_empty=True)
        if there is None:
            context.output("test -d /")  # a node that answers, so that silence means: not built
            wrong.append(f"{recipe.title} is not built")
        elif there != recipe.folder:
            wrong.append(f"{recipe.link} leads to {there}, not to {recipe.folder}")
        found.append(recipe.title)
    if wrong:
        fail("; ".join(wrong))
    return ", ".join(found)


def _open_mpi(context: CheckContext[HpcStackOptions]) -> str:
    program = f"{context.options.programs(context.node)}/ompi_info"
    there = parse_ompi_info(context.output("%s --parsable --all", program))
    declared = context.options.openmpi.version
    if context.options.mpi == "build" and there.version != declared:
        fail(f"{program} is Open MPI {there.version}, not {declared}")
    if "pml:ucx" not in there.components:
        fail(f"Open MPI {there.version} has no UCX (no component pml:ucx)")
    if texts.has_cuda(context.cluster, context.node, context.options) and not there.cuda:
        fail(f"Open MPI {there.version} was built without CUDA")
    return f"Open MPI {there.version} with UCX{' and CUDA' if there.cuda else ''}"


def _environment(context: CheckContext[HpcStackOptions]) -> str:
    declared = texts.declared(context.options, _parts(context))
    return as_rendered(context, declared) or "nothing is set, as declared"


def _starts(context: CheckContext[HpcStackOptions]) -> str:
    manager = context.node.offers(RunsWorkloadManager)
    if manager is None or manager.workload_manager is not WorkloadManager.SLURM:
        raise NotInScope("no workload manager runs on this node that starts MPI's processes")
    command = context.options.mpi_command(context.node)
    placeholders = " ".join(["%s"] * len(command))
    factor = str(context.cluster.ssh.time_factor)
    result = context.host.run(f"sh -c %s job %s %s {placeholders}", _JOB, factor, context.node.name, *command)
    error = (str(result.stderr).strip() or str(result.stdout).strip() or "nothing").splitlines()[-1]
    if result.rc in (124, 126, 127) or any(words in result.stderr for words in _NO_ANSWER):
        raise Undetermined(f"the processes did not start: {error}")
    if result.rc != 0:
        fail(f"srun exited {result.rc}: {error}")
    lines = [
        line.split()[1:4] for line in str(result.stdout).splitlines() if line.startswith("rackwright-mpi ")
    ]
    if sorted(lines) != [["0", "2", "3"], ["1", "2", "3"]]:
        fail(f"two processes printed rank, size and sum as {sorted(lines)}: they did not find each other")
    return "two processes found each other through PMIx"


def _nccl(context: CheckContext[HpcStackOptions]) -> str:
    if not context.options.has_nccl(context.cluster, context.node):
        raise NotInScope("the cluster locks no NCCL")
    return held_at(context, texts.nccl(context.cluster, context.node, context.options))


def _all_reduce_perf(context: CheckContext[HpcStackOptions]) -> str:
    (folder,) = context.options.program_folders
    loaded = parse_ldd(context.output("ldd %s", f"{folder}/all_reduce_perf"))
    group = group_of(context.cluster, context.node)
    nccl = context.output("readlink -f %s", library(loaded, "libnccl")).strip()
    wanted = upstream(
        next(iter(texts.nccl(context.cluster, context.node, context.options))).partition("=")[2]
    )
    if nccl.rpartition(".so.")[2] != wanted:
        fail(f"it loads {nccl}, not the locked NCCL {wanted}")
    cuda = context.output("readlink -f %s", library(loaded, "libcudart")).strip()
    home = context.output("readlink -f %s", cuda_home(group)).strip()
    if group.source != "distribution" and not cuda.startswith(f"{home}/"):
        fail(f"it loads {cuda}, not the locked CUDA in {home}")
    mpi = context.output("readlink -f %s", library(loaded, "libmpi")).strip()
    openmpi = next((recipe.prefix for recipe in _parts(context) if recipe.part == "openmpi"), None)
    if openmpi is not None and not mpi.startswith(f"{openmpi}/"):
        fail(f"it loads {mpi}, not the declared Open MPI in {openmpi}")
    return f"NCCL {wanted}, {cuda}, {mpi}"


def _builds(node: Node, options: HpcStackOptions) -> bool:
    return texts.builds(node, options)


CHECKS = (
    Check("the packages of MPI and its tools are installed", _packages),
    Check("everything was built as declared", _built, applies=_builds),
    Check("Open MPI is as declared, with UCX", _open_mpi),
    Check("the MPI users' environment is as declared", _environment),
    Check(
        "MPI processes start through PMIx",
        _starts,
        applies=lambda node, options: node.holds(NodeRole.WORKER),
        settle_seconds=60,
        timeout_seconds=120,
        in_service=True,
        live=True,
    ),
    Check(
        "NCCL is installed as locked and held",
        _nccl,
        applies=lambda node, options: has_stack(node) and options.nccl is not False,
    ),
    Check(
        "all_reduce_perf loads the locked NCCL and CUDA",
        _all_reduce_perf,
        applies=lambda node, options: options.builds_nccl_tests(node),
    ),
)
