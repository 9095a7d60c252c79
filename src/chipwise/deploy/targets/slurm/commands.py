"""What the program for cloud nodes is to run, as cloud_nodes.json has it."""

from __future__ import annotations

import json
from typing import Any

from chipwise.deploy.deployment import Deployment, Provider
from chipwise.deploy.targets.slurm import amazon, google
from chipwise.deploy.targets.slurm.nodes import RESUME_TIMEOUT_S, cloud_pool, machines_of, node_names

CLOUDS = {Provider.GCP: google, Provider.AWS: amazon}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin"
FIRST_WAIT_S, LONGEST_WAIT_S = 60, 1800
ORPHAN_S = 900  # a machine that is being made is not in the state until it is there
COMMAND_TIMEOUT_S = 300  # of one that lists or removes
CREATE_SHARE = 0.9  # of the time that Slurm waits for a node, within which its machine has to be there


def cloud_settings(deployment: Deployment) -> str:
    """The settings of cloud_nodes.py."""
    pools = [pool for pool in deployment.pools if cloud_pool(pool, deployment)]
    cloud = CLOUDS[deployment.provider]
    settings: dict[str, Any] = {
        "schema": 1,
        "cluster": deployment.name,
        "site": site_values(deployment),
        "commands": {},
        "environment": {"PATH": PATH, **cloud.ENVIRONMENT},  # slurmctld gives its programs none
        "state": "/var/spool/slurm/cloud_nodes",
        "wait_s": [FIRST_WAIT_S, LONGEST_WAIT_S],
        "orphan_s": ORPHAN_S,
        "command_timeout_s": COMMAND_TIMEOUT_S,
        "pools": {
            pool.name: {
                "create_timeout_s": CREATE_SHARE * RESUME_TIMEOUT_S[pool.family],
                "always": node_names(pool, deployment)[: pool.min_hosts],
                "placements": [cloud.placement(pool, deployment)],
                "machines": machines_of(pool, deployment),
            }
            for pool in pools
        },
    }
    return json.dumps(settings, indent=1) + "\n"


def site_values(deployment: Deployment) -> dict[str, str]:
    """What only the site knows, with words for each."""
    pools = [pool for pool in deployment.pools if cloud_pool(pool, deployment)]
    return {name: what for pool in pools for name, what in CLOUDS[deployment.provider].site(pool).items()}


def site_example(deployment: Deployment) -> str:
    """The file to be filled in: every value is empty, which the program refuses by name."""
    return json.dumps({"values": dict.fromkeys(site_values(deployment), "")}, indent=1) + "\n"
