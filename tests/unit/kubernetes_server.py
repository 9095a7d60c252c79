"""An HTTP server on loopback that plays recorded answers of a Kubernetes API server, and keeps what it was asked."""

import json
import ssl
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def failure(code, reason, message):
    """A Status as API servers answer it."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


class Server(ThreadingHTTPServer):
    """`answers`: (method, path) -> a list of answers, the last of which is given again and again.

    An answer is (status, body) or (status, body, headers); a body is JSON, or bytes to be sent as they are, or a number of seconds
    for which nothing is sent, or a list of bytes that are sent a quarter of a second apart. With the header Content-Length of
    one's own a body is cut short.
    """

    daemon_threads = True

    def __init__(self, certificate=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.secured = certificate is not None
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate.file, certificate.key)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.answers, self.asked = {}, []
        self.ending = threading.Event()

    def play(self, method, path, *answers):
        self.answers[method, path] = list(answers)

    def config(self, folder, host="127.0.0.1", **cluster):
        """A kubeconfig for it."""
        address = f"{'https' if self.secured else 'http'}://{host}:{self.server_port}"
        where = folder / "kubeconfig"
        where.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "here",
                    "clusters": [{"name": "c", "cluster": {"server": address, **cluster}}],
                    "users": [{"name": "u", "user": {"token": "t0ken"}}],
                    "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
                }
            )
        )
        return str(where)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        path, _, query = self.path.partition("?")
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        self.server.asked.append((self.command, path, query, body, dict(self.headers)))
        left = self.server.answers.get(
            (self.command, path), [(404, failure(404, "NotFound", "the server could not find the requested resource"))]
        )
        status, data, headers = (*(left.pop(0) if len(left) > 1 else left[0]), {})[:3]
        headers = dict(headers)
        self.close_connection = "Content-Length" in headers
        if callable(data):
            status, data = data(query, body)
        if isinstance(data, float):
            self.server.ending.wait(data)
            self.close_connection = True
            return
        if isinstance(data, list):
            self.send_response(status)
            self.send_header("Content-Length", str(sum(map(len, data))))
            self.end_headers()
            with suppress(OSError):  # whoever asked has left
                for part in data:
                    self.wfile.write(part)
                    self.server.ending.wait(0.25)
            self.close_connection = True
            return
        raw = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", headers.pop("Content-Length", str(len(raw))))
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(raw)

    do_GET = do_POST = do_DELETE = do_PATCH = answer

    def log_message(self, *_):
        pass


@contextmanager
def serving(certificate=None):
    """A server that is stopped whatever happens."""
    server = Server(certificate)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.ending.set()
        server.shutdown()
        thread.join()
        server.server_close()


def now_text(ago=0.0):
    """A time as API servers write it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago))
