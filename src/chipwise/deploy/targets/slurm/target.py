"""The target `slurm`: slurm.conf with what it includes, and programs for cloud nodes."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.deploy.data_files import data_text, module_text
from chipwise.deploy.deployment import Deployment, Engine, NodePool, Problem, Provider, Term, Undeployable
from chipwise.deploy.targets.slurm import cloud_nodes
from chipwise.deploy.targets.slurm.commands import CLOUDS, cloud_settings, site_example
from chipwise.deploy.targets.slurm.google import TPU_RUNTIMES
from chipwise.deploy.targets.slurm.nodes import RESUME_TIMEOUT_S, cloud_pool, machines_of, node_names, node_range
from chipwise.deploy.targets.target import RouterSettings, Target
from chipwise.deploy.tree import TreeFile

HEAD = "# Written by chipwise deploy write.\n"
# A machine that idles is kept for as long as a start takes: whatever comes next, no more than twice the least is paid
# (Karlin et al., Competitive snoopy caching, 1988). Half of the longest start is taken for one.
SUSPEND_TIME_S = {family: seconds // 2 for family, seconds in RESUME_TIMEOUT_S.items()}
MEMORY_SHARE = 0.95  # of a machine's memory that jobs may have; slurmd registers what the kernel leaves of it
UNIT = "chipwise-cloud-nodes"  # of systemd
CHIP_FILES = {"gpu": "/dev/nvidia"}  # which a job is held to; TPU jobs have whole hosts


def check(deployment: Deployment) -> None:
    """Refuse what this target can't hold."""
    for pool in deployment.pools:
        if pool.term is Term.FLEX_START:
            reason = "flex-start machines come when Google has them, and Slurm does not wait for a node that long"
            raise Undeployable(Problem.TERM, pool.name, reason, f"write it for gke, or --term {pool.name}=spot")
        if pool.term is Term.RESERVED and not pool.reservation and cloud_pool(pool, deployment):
            reason = "reserved machines are taken of a reservation by its name, and none is given"
            raise Undeployable(Problem.NO_RESERVATION, pool.name, reason, f"--reservation {pool.name}=NAME")
        if deployment.provider is Provider.GCP and pool.family == "tpu" and pool.chip not in TPU_RUNTIMES:
            reason = f"{pool.chip} is not to be had as a Cloud TPU VM"
            raise Undeployable(Problem.CHIP_NOT_OFFERED, pool.name, reason, "write it for gke")
    if deployment.provider not in (*CLOUDS, Provider.ON_PREMISES):
        reason = f"machines of {deployment.provider} can't be made by the programs written here"
        raise Undeployable(Problem.OTHER_PROVIDER, "", reason, "machines of gcp, aws or of your own")
    if deployment.provider is Provider.GCP and not deployment.zone:
        raise Undeployable(Problem.NO_ZONE, "", "machines are made in a zone, and none is given", "--zone")


def tree(deployment: Deployment) -> list[TreeFile]:
    """The files."""
    tree_files = [
        TreeFile(path="slurm/slurm.conf", text=slurm_conf(deployment)),
        TreeFile(path="slurm/site.conf", text=site_conf(deployment)),
        TreeFile(path="slurm/nodes.conf", text=nodes_conf(deployment)),
        TreeFile(path="slurm/gres.conf", text=gres_conf(deployment)),
        TreeFile(path="slurm/topology.conf", text=topology_conf(deployment)),
        TreeFile(
            path="slurm/cgroup.conf", text=HEAD + "ConstrainCores=yes\nConstrainDevices=yes\nConstrainRAMSpace=yes\n"
        ),
    ]
    if not _any_cloud(deployment):
        return tree_files
    program = module_text("targets", "slurm", "cloud_nodes.py")
    start = '#!/bin/sh\nexec python3 -I -S "$(dirname "$0")/cloud_nodes.py" {action} "$@"\n'
    return [
        *tree_files,
        TreeFile(path="power/cloud_nodes.py", text=program),
        TreeFile(path=f"power/{cloud_nodes.SETTINGS}", text=cloud_settings(deployment)),
        TreeFile(path="power/site.example.json", text=site_example(deployment)),
        *(
            TreeFile(path=f"power/{action}", text=start.format(action=action), executable=True)
            for action in ("resume", "suspend", "resume_fail", "sync", "check")
        ),
        TreeFile(path="power/node.sh", text=_data(f"node-{deployment.provider}.sh"), executable=True),
        *(TreeFile(path=f"power/{UNIT}.{kind}", text=_data(f"{UNIT}.{kind}")) for kind in ("service", "timer")),
    ]


def _data(name: str) -> str:
    return data_text("slurm", name)


def slurm_conf(deployment: Deployment) -> str:
    """What holds for the cluster whatever its machines."""
    kinds = ",".join(sorted({pool.family for pool in deployment.pools}))
    lines = [
        HEAD + "# Read by slurmctld and, configless, by every slurmd. What differs by site is in site.conf.",
        "include site.conf",
        "",
        f"GresTypes={kinds}",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core_Memory",
        "# a slice is a switch of its own: Slurm gives no job parts of two",
        "TopologyPlugin=topology/tree",
        "# jobs go on elsewhere when their node fails or is preempted",
        "JobRequeue=1",
        "ReturnToService=2",
        "SchedulerType=sched/backfill",
    ]
    if _any_cloud(deployment):
        always = [name for pool in deployment.pools for name in node_names(pool, deployment)[: pool.min_hosts]]
        lines += [
            "",
            "# Cloud nodes: powered down until a job gets them. Their rates and times by pool are in nodes.conf.",
            "ResumeRate=0",
            "SuspendRate=0",
            f"ResumeTimeout={max(RESUME_TIMEOUT_S.values())}",
            f"SuspendTime={max(SUSPEND_TIME_S.values())}",
            "SuspendTimeout=120",
            *([f"SuspendExcNodes={','.join(always)}"] if always else []),
            "# idle_on_node_suspend: a node that is powered down is idle, whatever it was, and not down for good;",
            "# cloud_reg_addrs: a machine brings its address along; cloud: powered-down nodes are shown, so that",
            "# the router sees what it could have",
            "SlurmctldParameters=enable_configless,idle_on_node_suspend,cloud_reg_addrs",
            "PrivateData=cloud",
        ]
    return "\n".join([*lines, "", "include nodes.conf", ""])


def site_conf(deployment: Deployment) -> str:
    """What differs by site; to be edited where it is installed."""
    template = _data("site.conf")
    named = {"ResumeProgram": "resume", "SuspendProgram": "suspend", "ResumeFailProgram": "resume_fail"}
    power = "".join(f"{key}=/etc/slurm/power/{program}\n" for key, program in named.items())
    return template.replace("@CLUSTER@", deployment.name).replace("@POWER@\n", power if _any_cloud(deployment) else "")


def nodes_conf(deployment: Deployment) -> str:
    """Nodes and partitions: one partition a pool."""
    lines = [HEAD.rstrip()]
    for pool in deployment.pools:
        cloud = cloud_pool(pool, deployment)
        names = node_range(pool, deployment)
        parts = [f"NodeName={names}"]
        if pool.host_cpus:
            parts.append(f"CPUs={pool.host_cpus} RealMemory={_memory(pool)}")
        parts.append(f"Gres={pool.family}:{pool.chip}:{pool.host_chips} Feature={pool.family},{pool.chip}")
        parts.append("State=CLOUD" if cloud else "State=UNKNOWN")
        kind = f"{pool.slices} x {pool.topology}" if pool.topology else f"{pool.hosts} hosts"
        lines += ["", f"# {pool.name}: {kind}, {pool.machine or 'machines of your own'}, {pool.term}", " ".join(parts)]
        partition = [f"PartitionName={pool.name} Nodes={names} State=UP"]
        partition.append(f"MaxTime={_minutes(pool)}")
        if pool.topology:
            partition.append("OverSubscribe=EXCLUSIVE")  # a host of a slice has one job
        elif pool.host_cpus:
            partition.append(
                f"DefCpuPerGPU={pool.host_cpus // pool.host_chips} DefMemPerGPU={_memory(pool) // pool.host_chips}"
            )
        if cloud:
            partition.append(f"ResumeTimeout={RESUME_TIMEOUT_S[pool.family]} SuspendTime={SUSPEND_TIME_S[pool.family]}")
        lines.append(" ".join(partition))
    return "\n".join(lines) + "\n"


def _memory(pool: NodePool) -> int:
    """MiB of a host that jobs may have."""
    return int(pool.host_memory_gib * 1024 * MEMORY_SHARE)


def _minutes(pool: NodePool) -> str:
    return "INFINITE" if pool.max_seconds is None else str(max(1, int(pool.max_seconds // 60)))


def gres_conf(deployment: Deployment) -> str:
    """Chips of the nodes."""
    lines = [HEAD.rstrip()]
    for pool in deployment.pools:
        chips = f"NodeName={node_range(pool, deployment)} Name={pool.family} Type={pool.chip}"
        device = CHIP_FILES.get(pool.family)
        if device is None:
            lines += [
                f"# {pool.name}: counted, not held to device files: a job has whole hosts",
                f"{chips} Count={pool.host_chips}",
            ]
        else:
            several = f"[0-{pool.host_chips - 1}]" if pool.host_chips > 1 else "0"
            lines.append(f"{chips} File={device}{several}")
    return "\n".join(lines) + "\n"


def topology_conf(deployment: Deployment) -> str:
    """A switch for each slice, and one for the hosts of a pool of GPUs."""
    lines = [HEAD.rstrip()]
    for pool in deployment.pools:
        if pool.multi_host:
            lines += [
                f"SwitchName={machine} Nodes={','.join(nodes)}"
                for machine, nodes in machines_of(pool, deployment).items()
            ]
        else:
            lines.append(f"SwitchName={pool.name} Nodes={node_range(pool, deployment)}")
    return "\n".join(lines) + "\n"


def steps(deployment: Deployment) -> Sequence[str]:
    """How to bring it up."""
    lines = [
        "On the controller: `cp slurm/*.conf /etc/slurm/`, and edit `/etc/slurm/site.conf` there: host names, folders."
    ]
    if _any_cloud(deployment):
        lines += [
            "`cp -r power /etc/slurm/`, copy `/etc/slurm/power/site.example.json` to `site.json` beside it and "
            "fill it in: `/etc/slurm/power/check` names what is missing and what it is.",
            "`cp power/chipwise-cloud-nodes.* /etc/systemd/system/` and "
            "`systemctl enable --now chipwise-cloud-nodes.timer`: every minute it gives back nodes whose machines were "
            "preempted or out of stock, and removes machines that nobody wants.",
            "Restart `slurmctld`; `sinfo` shows every node as `idle~`. The first job starts its machines.",
        ]
    else:
        lines.append("Restart `slurmctld`, and `slurmd` on every node.")
    lines.append("`chipwise router run --pools pools.yaml` where `sbatch` works.")
    return [f"{number}. {line}" for number, line in enumerate(lines, 1)]


def router(deployment: Deployment) -> RouterSettings:
    """A pool is a partition."""
    return RouterSettings(
        backend={},
        addresses={
            pool.name: {
                "partition": pool.name,
                "gres": f"{pool.family}:{pool.chip}",
                "chips_per_node": str(pool.host_chips),
            }
            for pool in deployment.pools
        },
    )


def _any_cloud(deployment: Deployment) -> bool:
    return any(cloud_pool(pool, deployment) for pool in deployment.pools)


TARGET = Target(
    name="slurm",
    title="a Slurm cluster",
    engine=Engine.SLURM,
    provider=None,
    files=tree,
    steps=steps,
    router=router,
    check=check,
)
