"""What a deployment is made of: a pools file, a fleet plan, a comparison."""

from chipwise.deploy.read.requests import Source
from chipwise.deploy.read.source import read_source

__all__ = ["Source", "read_source"]
