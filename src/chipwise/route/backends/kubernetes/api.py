"""Calls to one Kubernetes API server: bounded in time, patient with a server that asks for patience, and no more.

What a server answers is one of three things here: an object, `Answered` with its status (for the caller to judge), or
`BackendDown`, after which nothing is known.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from yaml import YAMLError

from chipwise.errors import BrokenFile, ChipwiseError, InputError
from chipwise.io.deadline import in_time
from chipwise.io.install import install_line
from chipwise.io.regular_file import check_regular
from chipwise.io.urls import is_loopback
from chipwise.route.backend import BackendDown
from chipwise.route.backends.answers import UNREADABLE

CALL_S = 20.0  # connecting and answering, each
WHOLE = 3  # times that for a call as a whole: fetching a token, connecting, answering
LIST_S = 120.0  # for a list over all its pages; the last has its own time beyond (LONGEST_LISTING_S is for all of it)
MOST = 256 * 2**20  # bytes of an answer; a page of 500 pods takes some 10 MB
PATIENCE_S = 30.0  # for a server that asks to be tried again, all waits of a call together
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 8.0  # doubled at each, where the server does not say how long
MAX_CONFIG_BYTES = 10_000_000  # of a kubeconfig: a thousand clusters with their certificates take some 5 MB
PAGE = 500  # objects a page, as kubectl asks for
RESTARTS = 3  # of a list whose pages have expired
ALLOWED = "`insecure: true` in the pool's address allows that"
IN_CLUSTER = "in-cluster"  # in place of a kubeconfig: the pod's own account


class Answered(ChipwiseError):
    """The server answered with a status that is no success. `named`: it says of which object."""

    def __init__(self, status: int, words: str, named: bool = False) -> None:
        self.status, self.words, self.named = status, words, named
        super().__init__(f"kubernetes: {status}: {words}")


class Cluster:
    """One API server as a kubeconfig's context names it."""

    def __init__(
        self,
        kubeconfig: str,
        context: str,
        call_s: float = CALL_S,
        patience_s: float = PATIENCE_S,
        sleep: Callable[[float], None] = time.sleep,
        insecure: bool = False,
    ) -> None:
        """`insecure`: the server need not prove who it is, nor the way to it be encrypted."""
        self.kubeconfig, self.context, self.insecure = kubeconfig, context, insecure
        self.call_s, self.patience_s, self._sleep = call_s, patience_s, sleep
        self._client: Any = None

    def create(self, path: tuple[str, str, str, str], body: Mapping[str, Any]) -> dict[str, Any]:
        """Make an object. Unknown fields are refused by the server rather than dropped."""
        return self._custom("create_namespaced_custom_object", *path, dict(body), field_validation="Strict")

    def get(self, path: tuple[str, str, str, str], name: str) -> dict[str, Any]:
        """One object; of the whole cluster where the namespace is empty."""
        group, version, namespace, plural = path
        if not namespace:
            return self._custom("get_cluster_custom_object", group, version, plural, name)
        return self._custom("get_namespaced_custom_object", *path, name)

    def delete(self, path: tuple[str, str, str, str], name: str) -> None:
        """Delete an object after its pods, so that it is there until nothing of it runs."""
        self._custom("delete_namespaced_custom_object", *path, name, propagation_policy="Foreground")

    def objects(self, path: tuple[str, str, str, str], labels: str) -> list[dict[str, Any]]:
        """All objects with these labels; none where the server knows no such kind."""
        return self._pages(
            lambda api, page: api.CustomObjectsApi(self._client).list_namespaced_custom_object(
                *path, label_selector=labels, **page
            ),
            absent_is_none=True,
        )

    def pods(self, namespace: str, labels: str, fields: str = "") -> list[dict[str, Any]]:
        """Pods, of all namespaces where none is given."""
        more = {"label_selector": labels} if labels else {}
        more |= {"field_selector": fields} if fields else {}
        if namespace:
            return self._pages(
                lambda api, page: api.CoreV1Api(self._client).list_namespaced_pod(namespace, **more, **page)
            )
        return self._pages(lambda api, page: api.CoreV1Api(self._client).list_pod_for_all_namespaces(**more, **page))

    def nodes(self, labels: str) -> list[dict[str, Any]]:
        """Nodes with these labels."""
        more = {"label_selector": labels} if labels else {}
        return self._pages(lambda api, page: api.CoreV1Api(self._client).list_node(**more, **page))

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.rest_client.pool_manager.clear()
            self._client = None

    def _raw(self) -> dict[str, Any]:
        # bytes as they came: objects are read by ourselves, so that nonsense is seen as such
        return {"_preload_content": False, "_request_timeout": (self.call_s, self.call_s)}

    def _custom(self, method: str, *arguments: Any, **options: Any) -> dict[str, Any]:
        """One call of the client's API for objects of any kind."""
        return self._call(
            lambda api: getattr(api.CustomObjectsApi(self._client), method)(*arguments, **options, **self._raw())
        )

    def _pages(self, fetch: Callable[[Any, dict[str, Any]], Any], absent_is_none: bool = False) -> list[dict[str, Any]]:
        """A list over all its pages. Pages expire (410): then it starts over, a few times."""
        until = time.monotonic() + LIST_S
        for _ in range(RESTARTS):
            objects: list[dict[str, Any]] = []
            token = ""
            try:
                while True:
                    if time.monotonic() > until:
                        raise self._down(f"no whole list within {LIST_S:g} s")
                    page = {"limit": PAGE, **({"_continue": token} if token else {}), **self._raw()}
                    answer = self._call(lambda api, page=page: fetch(api, page))  # type: ignore[misc]
                    items = answer.get("items")
                    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
                        raise self._down("its answer is no list of objects")
                    objects += items
                    token = str((answer.get("metadata") or {}).get("continue") or "")
                    if not token:
                        return objects
            except Answered as answered:
                if answered.status == 404 and absent_is_none:
                    return []
                if answered.status != 410:
                    raise self._down(str(answered)) from None
        raise self._down(f"its lists expired {RESTARTS} times while they were read")

    def _call(self, ask: Callable[[Any], Any]) -> dict[str, Any]:
        """One call with the waits that the server asks for."""
        waited, wait = 0.0, FIRST_WAIT_S
        while True:
            try:
                return self._once(ask)
            except _Again as again:
                pause = again.seconds if again.seconds is not None else wait
                if waited + pause > self.patience_s:
                    raise self._down(f"{again.words}; not within {self.patience_s:g} s") from None
                self._sleep(pause)
                waited, wait = waited + pause, min(wait * 2, LONGEST_WAIT_S)

    def _once(self, ask: Callable[[Any], Any]) -> dict[str, Any]:
        client: Any = import_module("kubernetes.client")
        from urllib3.exceptions import HTTPError

        try:
            data = self._bounded(lambda: self._response(ask, client))
        except client.ApiException as error:
            raise self._judged(error) from None
        except (HTTPError, OSError) as error:
            raise self._down(f"{type(error).__name__}: {error}") from None
        try:
            document = json.loads(data)
        except ValueError:
            raise self._down(f"its answer is no JSON: {bytes(data)[:60]!r}") from None
        if not isinstance(document, dict):
            raise self._down("its answer is no object")
        return document

    def _response(self, ask: Callable[[Any], Any], client: Any) -> bytes:
        self._connect()
        response = ask(client)
        try:
            data = bytes(response.read(MOST + 1, decode_content=True))
            if len(data) > MOST:
                raise self._down(f"its answer has more than {MOST} bytes")
            return data
        finally:
            response.release_conn()

    def _bounded(self, call: Callable[[], bytes]) -> bytes:
        """A call that ends in time, whatever it waits for: an answer that trickles in, a program that fetches tokens.

        The client's own time-outs bound each wait for bytes, not their sum. A thread that is late is left to itself,
        with its connection.
        """
        try:
            return in_time(call, WHOLE * self.call_s, self._forget)
        except TimeoutError as late:
            raise self._down(str(late)) from None

    def _forget(self) -> None:
        self._client = None

    def _judged(self, error: Any) -> Exception:
        """What a status that is no success means."""
        words = _words(error)
        status = int(error.status or 0)
        if status in (429, 503):
            return _Again(f"{status}: {words}", _seconds(dict(error.headers or {})))
        if status == 401:  # what the configuration says may have changed: read it again next time
            self._client = None
        if status == 0 or status == 401 or status >= 500:
            return self._down(f"{status}: {words}")
        return Answered(status, words, _names_object(error))

    def _connect(self) -> None:
        if self._client is not None:
            return
        client: Any = import_module("kubernetes.client")  # typed in part alone
        config: Any = import_module("kubernetes.config")
        settings = client.Configuration()
        try:
            self._check_files("kubeconfig")
            if self.kubeconfig == IN_CLUSTER:
                config.load_incluster_config(client_configuration=settings)
            else:
                config.load_kube_config(
                    self.kubeconfig or None, self.context or None, client_configuration=settings, persist_config=False
                )
        except (config.ConfigException, YAMLError, OSError, BrokenFile, *UNREADABLE) as error:
            raise self._down(f"its configuration can't be read ({error})") from None
        if not self.insecure and (weak := weakness(settings.host or "", bool(settings.verify_ssl))):
            raise self._down(f"{weak}; {ALLOWED}")
        settings.retries = False  # tries are counted here
        self._client = client.ApiClient(settings)

    def check_link(self, field: str) -> None:
        """Refuse a configuration whose link is not safe. One that can't be read is `down` when it is used; nothing in
        it is run here, so programs that fetch tokens are not."""
        module: Any = import_module("kubernetes.config.kube_config")
        if self.kubeconfig == IN_CLUSTER or self.insecure:
            return
        self._check_files(field)
        try:
            config = module.KubeConfigMerger(self.kubeconfig or module.KUBE_CONFIG_DEFAULT_LOCATION).config
            context = config["contexts"].get_with_name(self.context or config["current-context"])["context"]
            cluster = config["clusters"].get_with_name(context["cluster"])["cluster"]
            weak = weakness(str(cluster["server"]), not cluster.safe_get("insecure-skip-tls-verify"))
        except (*UNREADABLE, module.ConfigException, YAMLError, OSError):
            return
        if weak:
            raise InputError(field, self.kubeconfig or "your own", f"a server that proves who it is: {weak}; {ALLOWED}")

    def _check_files(self, field: str) -> None:
        """Refuse what the client would wait for, or read without end."""
        module: Any = import_module("kubernetes.config.kube_config")
        if self.kubeconfig == IN_CLUSTER:
            return
        for name in str(self.kubeconfig or module.KUBE_CONFIG_DEFAULT_LOCATION).split(os.pathsep):
            path = Path(name).expanduser()
            if name and path.exists():
                check_regular(path, MAX_CONFIG_BYTES, field)

    def _down(self, why: str) -> BackendDown:
        where = " ".join(filter(None, ("kubernetes", self.context)))
        return BackendDown(f"{where}: {' '.join(why.split())[:400]}")


class _Again(Exception):
    """The server asks to be tried again."""

    def __init__(self, words: str, seconds: float | None) -> None:
        self.words, self.seconds = words, seconds
        super().__init__(words)


def _seconds(headers: Mapping[str, str]) -> float | None:
    """How long the server asks to wait; only whole seconds are used by API servers."""
    value = next((v for k, v in headers.items() if k.lower() == "retry-after"), "")
    with suppress(ValueError):
        return max(float(value), 0.0)
    return None


def _names_object(error: Any) -> bool:
    """Whether a Status names the object that it is about: a kind that is not served is answered without."""
    with suppress(ValueError, TypeError, AttributeError):
        status = json.loads(error.body)
        return bool((status.get("details") or {}).get("name"))
    return False


def _words(error: Any) -> str:
    """The message of a Status object, else the reason phrase."""
    with suppress(ValueError, TypeError, AttributeError):
        body = error.body
        status = json.loads(body if isinstance(body, str | bytes) else "null")
        if isinstance(status, dict) and status.get("message"):
            return str(status["message"])
    return str(error.reason or "no reason given")


def weakness(server: str, verified: bool) -> str:
    """What is not safe about the way to a server: its token could be read, or given to another; empty if nothing.

    >>> weakness("https://10.0.0.1:6443", True), weakness("http://127.0.0.1:8001", True)
    ('', '')
    >>> weakness("https://10.0.0.1:6443", False)
    'its kubeconfig has insecure-skip-tls-verify: true for https://10.0.0.1:6443'
    """
    parts = urlsplit(server)
    if parts.scheme == "http":
        return "" if is_loopback(parts.hostname or "") else f"its server {server} is not https"
    return "" if verified else f"its kubeconfig has insecure-skip-tls-verify: true for {server}"


def needs_client() -> None:
    """Refuse plainly where the client is not installed."""
    if find_spec("kubernetes") is None or find_spec("kubernetes.client") is None:
        raise InputError("backend", "kubernetes", f"a machine with its client: {install_line('kubernetes')}")
