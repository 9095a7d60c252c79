"""Clouds by the names that bills and people give them."""

from __future__ import annotations

import re

# the cloud's id here: as bills write it, then other names it goes by
NAMES: dict[str, tuple[str, ...]] = {
    "aws": ("AWS", "Amazon", "Amazon Web Services", "Amazon Web Services, Inc.", "AWS EMEA SARL"),
    "azure": ("Microsoft", "Azure", "Microsoft Azure", "Microsoft Corporation"),
    "gcp": ("Google Cloud", "GCP", "Google", "Google Cloud Platform", "Google LLC"),
    "oci": ("Oracle", "OCI", "Oracle Cloud", "Oracle Cloud Infrastructure", "Oracle America, Inc."),
    "lambda": ("Lambda", "Lambda Labs", "Lambda Cloud"),
    "runpod": ("RunPod",),
    "nebius": ("Nebius", "Nebius AI"),
    "on-premises": ("On-premises",),
}
_IDS = {re.sub(r"[^a-z0-9]", "", name.lower()): cloud for cloud, names in NAMES.items() for name in (cloud, *names)}


def cloud_id(name: str) -> str:
    """The id of a cloud; a name that isn't known is its own id, in lower case.

    >>> cloud_id("Google Cloud"), cloud_id("Amazon Web Services"), cloud_id("CoreWeave")
    ('gcp', 'aws', 'coreweave')
    """
    return _IDS.get(re.sub(r"[^a-z0-9]", "", name.lower()), name.strip().lower())


def provider_name(cloud: str) -> str:
    """The name that a cloud's bills carry.

    >>> provider_name("gcp"), provider_name("coreweave")
    ('Google Cloud', 'coreweave')
    """
    return NAMES.get(cloud, (cloud,))[0]
