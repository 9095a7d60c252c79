"""Clouds by the names that bills and people give them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from chipwise.catalog.files import rows


@cache
def cloud_names() -> Mapping[str, tuple[str, ...]]:
    """The names of each cloud by its id here: as its bills write it, then others it goes by."""
    return MappingProxyType(
        {
            row["cloud"]: (row["bills"], *(name for name in row["names"].split("|") if name))
            for row in rows("clouds.csv")
        }
    )


def cloud_id(name: str) -> str:
    """The id of a cloud; a name that isn't known is its own id, in lower case.

    >>> cloud_id("Google Cloud"), cloud_id("amazon"), cloud_id("Some Cloud")
    ('gcp', 'aws', 'some cloud')
    """
    return _ids().get(_squashed(name), name.strip().lower())


def provider_name(cloud: str) -> str:
    """The name that a cloud's bills carry.

    >>> provider_name("gcp"), provider_name("some cloud")
    ('Google Cloud', 'some cloud')
    """
    return cloud_names().get(cloud, (cloud,))[0]


@cache
def _ids() -> Mapping[str, str]:
    return {_squashed(name): cloud for cloud, names in cloud_names().items() for name in (cloud, *names)}


def _squashed(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
