"""Whether a file lies on a disk that several machines share: SQLite's log works between processes of one alone."""

from __future__ import annotations

import re
from pathlib import Path

# types of file systems that other machines may write to as well, as /proc/self/mountinfo names them (Linux 6.1)
NETWORK = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "ceph",
        "lustre",
        "gpfs",
        "beegfs",
        "glusterfs",
        "afs",
        "ocfs2",
        "gfs2",
        "9p",
        "orangefs",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.ceph",
        "fuse.s3fs",
        "fuse.gcsfuse",
    }
)
MOUNTS = Path("/proc/self/mountinfo")


def shared(path: Path, mounts: str | None = None) -> str:
    """The type of the network file system that a path lies on; empty where it is none, or can't be told.

    >>> shared(Path("/net/runs/x"), "1 0 0:1 / / rw - ext4 /dev/sda rw\\n2 1 0:2 / /net rw - nfs4 fs:/net rw")
    'nfs4'
    """
    try:
        text = MOUNTS.read_text("utf-8", "replace") if mounts is None else mounts
        real = path.resolve()
    except OSError:
        return ""
    best, kind = -1, ""
    for line in text.splitlines():
        left, dash, right = line.partition(" - ")
        fields = left.split(" ")
        if not dash or len(fields) < 5:
            continue
        mount = Path(re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), fields[4]))
        if len(mount.parts) >= best and real.is_relative_to(mount):  # of mounts at one place the last one counts
            best, kind = len(mount.parts), right.split(" ")[0]
    return kind if kind in NETWORK else ""
