"""What the cloud says is coming to this machine: maintenance, preemption, termination."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from time import time
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

from chipwise.bench.reading import Unreadable
from chipwise.observe.agent.instrument import Measurement

LIMIT_S = 2.0
MOST_BYTES = 65536
# Where Google's libraries look for another server, and AWS' (google-auth GCE_METADATA_HOST; AWS SDKs' reference guide,
# AWS_EC2_METADATA_SERVICE_ENDPOINT), 2026-11-19
_GOOGLE, _AWS = "GCE_METADATA_HOST", "AWS_EC2_METADATA_SERVICE_ENDPOINT"
_ADDRESS = "169.254.169.254"
_FOUND, _UNAUTHORIZED, _NONE = 200, 401, 404
_TOKEN_S = "21600"  # six hours, the most that AWS gives


class Notice(StrEnum):
    """What is coming."""

    PREEMPTED = "preempted"
    MAINTENANCE = "maintenance"
    TERMINATION = "termination"
    REBALANCE = "rebalance"  # AWS: at risk of being interrupted


class CloudNotices:
    """Notices of whichever cloud answers here."""

    name = "notices"
    every_s = 5.0  # AWS advises that often; spot machines have from 25 s (Azure: 30) to two minutes

    def __init__(self, root: Path = Path("/")) -> None:
        maker = _maker(root)
        if maker and not os.environ.get(_GOOGLE) and not os.environ.get(_AWS):
            raise Unreadable(f"this machine is no cloud's that tells: its maker is {maker}")
        clouds: tuple[_Google | _Aws, ...] = (_Google(), _Aws())
        with ThreadPoolExecutor(max_workers=len(clouds)) as pool:  # where nobody answers both take their time
            there = list(pool.map(lambda cloud: cloud.there(), clouds))
        cloud = next((cloud for cloud, answers in zip(clouds, there, strict=True) if answers), None)
        if cloud is None:
            raise Unreadable("no cloud's metadata service answers here")
        self._ask: Callable[[], dict[Notice, float]] = cloud.notices

    def read(self) -> Sequence[Measurement]:
        """When each is due, in seconds since 1970; that of now where it says no time."""
        return [Measurement("host_notice", at, "", (("notice", kind.value),)) for kind, at in self._ask().items()]

    def close(self) -> None:
        """Nothing is held."""


def _maker(root: Path) -> str:
    """Who made this machine, where its firmware says so and it is neither Google nor Amazon.

    Google's say Google Compute Engine, Amazon's Amazon EC2, their oldest Xen (docs.aws.amazon.com
    AWSEC2 UserGuide identify_ec2_instances, cloud.google.com/compute/docs/instances/detect-compute-engine, 2026-11-19).
    """
    words = []
    for name in ("sys_vendor", "product_name"):
        try:
            words.append((root / "sys/class/dmi/id" / name).read_text(errors="replace").strip()[:80])
        except OSError:
            return ""
    text = " ".join(filter(None, words))
    return "" if any(cloud in text.lower() for cloud in ("google", "amazon", "xen")) else text


class _Google:
    """cloud.google.com/compute/docs/metadata/predefined-metadata-keys, .../instances/spot, 2026-11-19."""

    def __init__(self) -> None:
        self._url = f"http://{os.environ.get(_GOOGLE, _ADDRESS)}/computeMetadata/v1/instance"
        self._first: dict[Notice, float] = {}

    def there(self) -> bool:
        return _present(self._get, "id")

    def notices(self) -> dict[Notice, float]:
        due: dict[Notice, float | None] = {}
        if (self._get("preempted") or "").strip() == "TRUE":
            due[Notice.PREEMPTED] = None
        event = (self._get("maintenance-event") or "NONE").strip()
        if event == "TERMINATE_ON_HOST_MAINTENANCE":
            due[Notice.TERMINATION] = None
        elif event != "NONE":
            due[Notice.MAINTENANCE] = None
        upcoming = _object(self._get("upcoming-maintenance/?recursive=true"))
        if upcoming.get("maintenance_status", upcoming.get("maintenanceStatus")) in ("PENDING", "ONGOING"):
            due[Notice.MAINTENANCE] = _moment(upcoming.get("window_start_time", upcoming.get("windowStartTime")))
        return _dated(due, self._first)

    def _get(self, path: str) -> str | None:
        return _page(*_answer(Request(f"{self._url}/{path}", headers={"Metadata-Flavor": "Google"})))


class _Aws:
    """docs.aws.amazon.com/AWSEC2/latest/UserGuide: spot-instance-termination-notices, rebalance-recommendations,

    monitoring-instances-status-check_sched, 2026-11-19.
    """

    def __init__(self) -> None:
        self._url = os.environ.get(_AWS, f"http://{_ADDRESS}").rstrip("/") + "/latest"
        self._token = ""
        self._first: dict[Notice, float] = {}

    def there(self) -> bool:
        return _present(self._get, "meta-data/instance-id")

    def notices(self) -> dict[Notice, float]:
        due: dict[Notice, float | None] = {}
        action = _object(self._get("meta-data/spot/instance-action"))
        if action.get("action") in ("terminate", "stop", "hibernate"):
            due[Notice.PREEMPTED] = _moment(action.get("time"))
        advice = _object(self._get("meta-data/events/recommendations/rebalance"))
        if advice:
            due[Notice.REBALANCE] = _moment(advice.get("noticeTime"))
        for event in _list(self._get("meta-data/events/maintenance/scheduled")):
            if event.get("State") == "active":
                retired = event.get("Code") in ("instance-retirement", "instance-stop")
                due[Notice.TERMINATION if retired else Notice.MAINTENANCE] = _moment(event.get("NotBefore"))
        return _dated(due, self._first)

    def _get(self, path: str) -> str | None:
        status, text = self._with_token(path)
        if status == _UNAUTHORIZED:  # the token is over
            self._token = ""
            status, text = self._with_token(path)
        return _page(status, text)

    def _with_token(self, path: str) -> tuple[int, str]:
        if not self._token:
            headers = {"X-aws-ec2-metadata-token-ttl-seconds": _TOKEN_S}
            status, text = _answer(Request(f"{self._url}/api/token", method="PUT", headers=headers))
            if status != _FOUND:
                return status, ""
            self._token = text.strip()
        return _answer(Request(f"{self._url}/{path}", headers={"X-aws-ec2-metadata-token": self._token}))


def _dated(due: dict[Notice, float | None], first: dict[Notice, float]) -> dict[Notice, float]:
    """Each with its time: its own, or that of when it was first seen."""
    for kind in [kind for kind in first if kind not in due]:
        del first[kind]
    return {kind: at if at is not None else first.setdefault(kind, time()) for kind, at in due.items()}


def _present(get: Callable[[str], str | None], path: str) -> bool:
    try:
        return get(path) is not None
    except Unreadable:
        return False


def _page(status: int, text: str) -> str | None:
    """A page, or None where there is none: that is how most notices say that nothing comes. All else is no answer."""
    if status not in (_FOUND, _NONE):
        raise Unreadable(
            f"the cloud's metadata service answers with status {status}"
            if status
            else "the cloud's metadata service does not answer"
        )
    return text if status == _FOUND else None


def _answer(request: Request) -> tuple[int, str]:
    """Status and text; 0 where nobody answers. Never through a proxy: the service is this machine's own."""
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=LIMIT_S) as answer:
            return answer.status, answer.read(MOST_BYTES).decode("utf-8", "replace")
    except HTTPError as error:
        return error.code, ""
    except (URLError, OSError):
        return 0, ""


def _object(text: str | None) -> dict[str, object]:
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _list(text: str | None) -> list[dict[str, object]]:
    try:
        value = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return []
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _moment(text: object) -> float | None:
    """Seconds since 1970: of 2026-11-02T10:00:00Z, and of 21 Jan 2027 09:00:43 GMT, as AWS writes events."""
    if not isinstance(text, str):
        return None
    for parse in (datetime.fromisoformat, _written):
        try:
            moment = parse(text)
        except ValueError:
            continue
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    return None


def _written(text: str) -> datetime:
    return datetime.strptime(text.replace("GMT", "+0000"), "%d %b %Y %H:%M:%S %z")
