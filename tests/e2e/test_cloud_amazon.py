"""The written commands of Amazon's, run by its own command line against moto's server, which answers as EC2 does."""

import json
import os
import subprocess
import sys

import pytest
from command import good
from real_parsers import installed
from slurm_cluster import free_ports

from chipwise.deploy.targets.slurm.cloud_nodes import Controller
from patience import until

pytestmark = [pytest.mark.slow, pytest.mark.service]
POOLS = [
    {"name": "h200", "backend": "slurm", "chip": "h200", "count": 16, "unit": 8, "terms": "spot", "price": 7},
    {"name": "l4", "backend": "slurm", "chip": "l4", "count": 1, "price": 1},
]


@pytest.fixture(scope="module")
def amazon(tmp_path_factory):
    """Variables with which `aws` reaches a cloud that ends with the tests."""
    folder, packages = tmp_path_factory.mktemp("amazon"), str(installed("amazon"))
    (port,) = free_ports(1)
    path = os.pathsep.join([packages, os.environ.get("PYTHONPATH", "")])
    program = folder / "aws"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={packages} exec {sys.executable} -m awscli "$@"\n')
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-2",
    }
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-p", str(port)],
        env={**environment, "PYTHONPATH": path, "MOTO_EC2_LOAD_DEFAULT_AMIS": "true"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(
            lambda: aws(environment, "ec2", "describe-vpcs", check=False).returncode == 0,
            "moto's server is silent",
            step=0.5,
        )
        yield environment
    finally:
        server.kill()
        server.wait()


def aws(environment, *words, check=True):
    return subprocess.run(["aws", *words], env=environment, capture_output=True, text=True, check=check)


def answer(environment, *words):
    return aws(environment, *words, "--output", "text").stdout.strip()


def test_machines_are_made_listed_and_removed(amazon, tmp_path, monkeypatch):
    source = tmp_path / "wanted.yaml"
    source.write_text(json.dumps({"pools": [{**pool, "cloud": "aws", "region": "us-east-2"} for pool in POOLS]}))
    good("deploy", "write", source, "--target", "slurm", "--name", "lab", "--to", tmp_path / "tree")
    power = tmp_path / "tree" / "power"
    aws(amazon, "iam", "create-instance-profile", "--instance-profile-name", "nodes")
    vpc = answer(amazon, "ec2", "describe-vpcs", "--query", "Vpcs[0].VpcId")
    values = {
        "image": answer(amazon, "ec2", "describe-images", "--query", "Images[0].ImageId"),
        "subnet": answer(amazon, "ec2", "describe-subnets", "--query", "Subnets[0].SubnetId"),
        "security_group": answer(
            amazon, "ec2", "create-security-group", "--group-name", "n", "--description", "n", "--vpc-id", vpc,
            "--query", "GroupId",
        ),
        "instance_profile": "nodes",
        "controller": "head",
        "munge_secret": "arn:aws:secretsmanager:us-east-2:123456789012:secret:munge",
    }  # fmt: skip
    names = ("PATH", "AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION")
    site = {"values": values, "state": str(tmp_path / "state"), "environment": {name: amazon[name] for name in names}}
    (power / "site.json").write_text(json.dumps(site))
    for name in names:
        monkeypatch.setenv(name, amazon[name])  # the controller sets them, and the test takes them back
    control = Controller(power)
    for pool, machine in (("h200", "lab-h200-0"), ("l4", "lab-l4-0")):
        listing = control.pools[pool]["placements"][0]["list"]
        failure, words, number = control.create(pool, machine)
        assert (failure, number) == (None, 0), words
        assert control.call(listing) == (None, f"{machine}\n")
        (instance,) = json.loads(aws(amazon, "ec2", "describe-instances", "--filters", f"Name=tag:Name,Values={machine}",
                                     "--query", "Reservations[].Instances[]", "--output", "json").stdout)  # fmt: skip
        tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
        assert (tags["chipwise-nodes"], tags["chipwise-cluster"]) == (machine, "lab")
        assert instance["MetadataOptions"]["HttpTokens"] == "required"
        assert instance["InstanceType"] == {"h200": "p5e.48xlarge", "l4": "g6.xlarge"}[pool]
        assert control.remove(pool, machine, 0)
        assert control.call(listing)[1].split() == []
        assert control.remove(pool, machine, 0)  # of what is gone it says so
    placement = control.pools["l4"]["placements"][0]
    for word, replaced in (("--image-id", "--image-idea"), (values["subnet"], "subnet-0")):
        words = [part.replace("{subnet}", values["subnet"]).replace(word, replaced) for part in placement["create"]]
        failure, answer_words = control.call(words, "lab-l4-0")
        assert failure is not None and replaced in answer_words  # the command line and the cloud refuse what is wrong
