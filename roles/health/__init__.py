"""health: each node probes itself, judges itself by its declaration, and drains itself.

Decisions, each with its reason:

One program, two files. The probe, the checks and the decision go to the node as a folder of modules that
need Python 3.9 alone; what the node is declared to be and what the site wants go beside it as JSON. So a
node is judged by the cluster file when the machine that runs rackwright is off, and a change of
either shows in a plan.

The folder of modules is named by its content. A pass that runs while another version is applied goes on
with the modules it began with, and what Python keeps in __pycache__ is never of another source.

Three callers, one program. Slurm's HealthCheckProgram (which this role offers by
`ChecksNodeHealth`, without knowing slurm's options), a prolog and an epilog; the last two are
drop-ins of the folders the slurm role runs. Kubernetes has none of the three: there a timer of
the node is the only caller. Only the first counts clean passes: a node on which
many short jobs run would else be back in service within seconds.

A prolog drains before it refuses. No health check would lift Slurm's own "Prolog error".

The share of drained nodes is counted from Slurm, at the moment of the drain, by the node itself.
There is no service that could be down. Nodes that drain at the same moment see each other right
after, and the later ones give way.

Kill switches are files: `echo why > /etc/rackwright/health/disabled.d/gpu-throttle` switches one
check off on one node, `disabled.d/all` everything. They belong to the operator: apply
leaves them alone, verify and `rackwright why` report them.
"""
