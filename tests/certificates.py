"""Authorities and certificates of one's own for tests of TLS, made by openssl."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key, in files."""

    file: Path
    key: Path


class Authority:
    """An authority that nobody else knows."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.file, self._key = folder, folder / f"{name}.crt", folder / f"{name}.key"
        _openssl("req", "-x509", *_new(self._key), "-subj", f"/CN={name}", "-out", self.file, "-days", "2")

    def certificate(self, name: str, alternative: str) -> Certificate:
        """A certificate for a host: DNS:name or IP:address."""
        key, request, file = (self.folder / f"{name}.{end}" for end in ("key", "csr", "crt"))
        _openssl("req", *_new(key), "-subj", f"/CN={name}", "-out", request)
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={alternative}\n")
        signed = ("-CA", self.file, "-CAkey", self._key, "-CAcreateserial", "-extfile", extensions, "-days", "2")
        _openssl("x509", "-req", "-in", request, "-out", file, *signed)
        return Certificate(file, key)


def _new(key: Path) -> tuple[object, ...]:
    return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key)


def _openssl(*words: object) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
