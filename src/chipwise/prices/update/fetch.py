"""Files of a SkyPilot catalog: from a web address, a folder or a file."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import urlsplit

from chipwise.catalog.files import rows
from chipwise.errors import InputError
from chipwise.prices.skypilot import MAX_BYTES

DEFAULT_URL = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8"
FILE = "vms.csv"
TIMEOUT_S = 30.0
ACCEPTED = "an http(s) address, a vms.csv file, or a folder with one folder a cloud (catalogs/v8)"

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """A file of prices of one cloud, and the day it says it is of; "" where nothing says."""

    path: Path
    cloud: str
    dated: str
    origin: str


def catalog_files(where: str, cache: Path, cloud: str, tell: Tell) -> tuple[list[CatalogFile], list[str]]:
    """The files of a catalog, downloaded into `cache` where it is on the web, and clouds that it doesn't have."""
    if urlsplit(where).scheme in ("http", "https"):
        return _downloaded(where, cache, cloud, tell)
    path = Path(where).expanduser()
    if path.exists() and not path.is_dir():
        return [CatalogFile(path, cloud or path.resolve().parent.name.lower(), _file_day(path), str(path))], []
    if not path.is_dir():
        raise InputError("source", where, ACCEPTED)
    roots = [path, *sorted((path / "catalogs").glob("v*"), key=_version, reverse=True)]
    for root in roots:
        files = [CatalogFile(f, f.parent.name, _file_day(f), str(f)) for f in sorted(root.glob(f"*/{FILE}"))]
        files = [f for f in files if f.cloud in _clouds() and cloud in ("", f.cloud)]
        if files:
            return files, []
    raise InputError("source", where, ACCEPTED)


def _version(folder: Path) -> int:
    digits = folder.name.removeprefix("v")
    return int(digits) if digits.isdigit() else -1


def _clouds() -> list[str]:
    """Clouds whose files are read, by their folders in the catalog."""
    return [row["cloud"] for row in rows("clouds.csv") if row["skypilot"] == "yes"]


def _downloaded(where: str, cache: Path, cloud: str, tell: Tell) -> tuple[list[CatalogFile], list[str]]:
    if where.endswith(".csv"):
        name = cloud or where.rstrip("/").split("/")[-2].lower()
        found = _one(where, cache, name)
        if found is None:
            raise InputError("source", where, "an address that holds a file (404, not found)")
        return [found], []
    files, missing = [], []
    for name in [cloud] if cloud else _clouds():
        tell(f"fetching {name}")
        found = _one(f"{where.rstrip('/')}/{name}/{FILE}", cache, name)
        if found is None:
            missing.append(name)
        else:
            files.append(found)
    if not files:
        raise InputError("source", where, f"an address with CLOUD/{FILE} below it: none was found")
    return files, missing


def _one(url: str, cache: Path, cloud: str) -> CatalogFile | None:
    """A file from the web; None where the address has none."""
    request = urllib.request.Request(url, headers={"User-Agent": "chipwise"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            data = answer.read(MAX_BYTES + 1)
            modified = answer.headers.get("Last-Modified", "")
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise InputError("source", url, f"an address that answers ({error.code} {error.reason})") from None
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise InputError(
            "source", url, f"an address that can be reached ({reason}); without a network name a file or a folder"
        ) from None
    if len(data) > MAX_BYTES:
        raise InputError("source", url, f"at most {MAX_BYTES // 1_000_000} MB")
    path = cache / cloud / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return CatalogFile(path, cloud, _header_day(modified) or _commit_day(url), url)


def _header_day(modified: str) -> str:
    """The day of a Last-Modified header; "" where there is none."""
    try:
        return parsedate_to_datetime(modified).date().isoformat() if modified else ""
    except (TypeError, ValueError):
        return ""


def commits_url(url: str) -> str:
    """Where GitHub says when a file was last changed; "" for addresses that aren't GitHub's raw files.

    >>> commits_url("https://raw.githubusercontent.com/org/repo/master/catalogs/v8/aws/vms.csv")
    'https://api.github.com/repos/org/repo/commits?sha=master&per_page=1&path=catalogs/v8/aws/vms.csv'
    """
    parts = urlsplit(url)
    pieces = parts.path.strip("/").split("/", 3)
    if parts.netloc != "raw.githubusercontent.com" or len(pieces) < 4:
        return ""
    owner, repo, branch, path = pieces
    return f"https://api.github.com/repos/{owner}/{repo}/commits?sha={branch}&per_page=1&path={path}"


def _commit_day(url: str) -> str:
    """The day of the last change of a file on GitHub; "" where it doesn't say (it answers 60 requests an hour)."""
    where = commits_url(url)
    if not where:
        return ""
    request = urllib.request.Request(where, headers={"User-Agent": "chipwise"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return str(json.load(answer)[0]["commit"]["committer"]["date"])[:10]
    except (OSError, ValueError, LookupError, TypeError):
        return ""  # said with the update: dated by its day


def _file_day(path: Path) -> str:
    """The day of a file: of its last commit in a checkout, else of the file itself."""
    folder = path.resolve().parent
    git = shutil.which("git")
    if git is not None:
        command = [git, "-C", str(folder), "log", "-1", "--format=%cs", "--", path.name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        if done.returncode == 0 and done.stdout.strip():
            return done.stdout.strip()
    return date.fromtimestamp(path.stat().st_mtime).isoformat()
