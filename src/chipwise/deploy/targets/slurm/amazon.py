"""Amazon's commands for machines: instances of EC2 with GPUs."""

from __future__ import annotations

from typing import Any

from chipwise.deploy.deployment import Deployment, NodePool, Term

SITE = {
    "image": "an AMI with slurmd and the GPU's driver (and EFA's, where hosts work together)",
    "subnet": "a private subnet in the zone of the machines, with a way to the controller",
    "security_group": "a group whose members may talk to each other and to the controller",
    "instance_profile": "a profile that may read the munge key, and nothing else",
    "controller": "host name of slurmctld",
    "munge_secret": "the secret of Secrets Manager with the munge key in base64",
}
ENVIRONMENT: dict[str, str] = {}  # the controller's own role acts
# network cards with an EFA by instance type: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html,
# 2026-11-19
EFA_CARDS = {
    "p4d.24xlarge": 4,
    "p4de.24xlarge": 4,
    "p5.48xlarge": 32,
    "p5e.48xlarge": 32,
    "p5en.48xlarge": 16,
    "p6-b200.48xlarge": 8,
}
# finds the instance of a name, and ends it
REMOVE = """set -e
ids=$(aws ec2 describe-instances --region "$2" --query 'Reservations[].Instances[].InstanceId' --output text \\
    --filters "Name=tag:Name,Values=$1" "Name=tag:chipwise-cluster,Values=$3" \\
    Name=instance-state-name,Values=pending,running,stopping,stopped)
test -z "$ids" || aws ec2 terminate-instances --region "$2" --instance-ids $ids"""


def site(pool: NodePool) -> dict[str, str]:
    """What only the site knows of a pool's machines."""
    return SITE


def placement(pool: NodePool, deployment: Deployment) -> dict[str, Any]:
    """A region and terms with the commands of Amazon's there."""
    region = deployment.region
    tags = {
        "Name": "{machine}",
        "chipwise-cluster": deployment.name,
        "chipwise-pool": pool.name,
        "chipwise-nodes": "{nodes}",
        "chipwise-controller": "{controller}",
        "chipwise-munge-secret": "{munge_secret}",
    }
    spelled = ",".join(f"{{Key={key},Value={value}}}" for key, value in tags.items())
    create = [
        *("aws", "ec2", "run-instances", "--region", region, "--count", "1"),
        *("--instance-type", pool.machine, "--image-id", "{image}"),
        *("--iam-instance-profile", "Name={instance_profile}"),
        *("--user-data", "file://{folder}/node.sh"),
        # no credentials for whoever can make the machine fetch a page; its tags say which node it is
        *("--metadata-options", "HttpTokens=required,HttpPutResponseHopLimit=1,InstanceMetadataTags=enabled"),
        *("--tag-specifications", f"ResourceType=instance,Tags=[{spelled}]"),
        *_network(pool),
        *_terms(pool),
    ]
    states = "Name=instance-state-name,Values=pending,running"
    return {
        "name": f"{region} {pool.term}",
        "create": create,
        "remove": ["sh", "-c", REMOVE, "remove", "{machine}", region, deployment.name],
        "list": [
            *("aws", "ec2", "describe-instances", "--region", region, "--output", "text"),
            *("--query", "Reservations[].Instances[].Tags[?Key=='Name'].Value[]"),
            *("--filters", f"Name=tag:chipwise-cluster,Values={deployment.name}"),
            *(f"Name=tag:chipwise-pool,Values={pool.name}", states),
        ],
    }


def _network(pool: NodePool) -> list[str]:
    """Every network card where hosts work together, the first of which has the address."""
    cards = EFA_CARDS.get(pool.machine, 0)
    if not cards:
        return ["--subnet-id", "{subnet}", "--security-group-ids", "{security_group}"]
    where = "SubnetId={subnet},Groups={security_group},InterfaceType=efa,DeleteOnTermination=true"
    return ["--network-interfaces", *(f"NetworkCardIndex={n},DeviceIndex={min(n, 1)},{where}" for n in range(cards))]


def _terms(pool: NodePool) -> list[str]:
    if pool.term is Term.SPOT:
        ended = "SpotOptions={SpotInstanceType=one-time,InstanceInterruptionBehavior=terminate}"
        return ["--instance-market-options", f"MarketType=spot,{ended}"]
    if pool.term is Term.RESERVED:
        target = f"CapacityReservationTarget={{CapacityReservationId={pool.reservation}}}"
        return ["--capacity-reservation-specification", target]
    return []
