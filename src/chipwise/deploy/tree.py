"""A tree of files: written whole or not at all, and never over files that are somebody else's."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from chipwise.errors import InputError
from chipwise.io.files import MAX_BYTES
from chipwise.io.regular_file import read_bytes

MANIFEST = "chipwise.json"  # names every file that was written, with its hash
SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFile:
    """A file of the tree."""

    path: str  # relative to the tree, with slashes
    text: str
    executable: bool = False


def write_tree(folder: Path, tree_files: Sequence[TreeFile], facts: Mapping[str, object]) -> tuple[Path, ...]:
    """Write the files and a manifest of them with `facts`; what was written before and is no more is removed.

    Files that the manifest doesn't name stay as they are; one that stands where a file is to be written is refused, as
    is a file that was edited since, and a folder that has files and no manifest.
    """
    before = read_manifest(folder)
    _refuse_foreign(folder, tree_files, before)
    hashes = {file.path: _hash(file.text.encode()) for file in sorted(tree_files, key=lambda file: file.path)}
    manifest = {"schema": SCHEMA, **facts, "files": hashes}
    whole = [*tree_files, TreeFile(path=MANIFEST, text=json.dumps(manifest, indent=2) + "\n")]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            draft.chmod(0o755)
            for file in whole:
                _write(draft / file.path, file)
            _move(draft, folder, whole)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        _remove(folder, set(before) - set(hashes))
    except OSError as error:
        raise InputError("to", str(folder), f"a folder that can be written ({error.strerror or error})") from None
    return tuple(folder / file.path for file in whole)


def read_manifest(folder: Path) -> Mapping[str, str]:
    """Hashes of the files that were written there, by path; empty where nothing was."""
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    files = manifest_of(folder).get("files")
    if not isinstance(files, dict):
        raise InputError("to", str(path), "the list of files that deploy wrote")
    return {str(name): str(value) for name, value in files.items()}


def manifest_of(folder: Path) -> Mapping[str, object]:
    """What the manifest says of the tree."""
    from chipwise.io.files import read_json

    return read_json(folder / MANIFEST)


def edited(folder: Path, hashes: Mapping[str, str]) -> list[str]:
    """Files of the manifest that are no longer as they were written; those removed are not among them."""
    paths = {name: folder / name for name in hashes}
    return [name for name, path in paths.items() if path.is_file() and _hash(_bytes(path)) != hashes[name]]


def _refuse_foreign(folder: Path, tree_files: Sequence[TreeFile], before: Mapping[str, str]) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError("to", str(folder), "a folder")
    if not before:
        foreign = sorted(path.name for path in folder.iterdir())
        if foreign:
            raise InputError(
                "to", str(folder), f"a new or empty folder, or one that deploy wrote (it has {foreign[0]})"
            )
        return
    new = {file.path: file.text.encode() for file in tree_files}
    changed = [name for name in edited(folder, before) if _bytes(folder / name) != new.get(name)]
    theirs = [name for name in new if name not in before and (folder / name).exists()]
    theirs = [name for name in theirs if _bytes(folder / name) != new[name]]
    if changed or theirs:
        why = f"{changed[0]} was edited since" if changed else f"{theirs[0]} is not of deploy"
        raise InputError("to", str(folder), f"a folder as deploy left it ({why}; keep a copy and remove it)")


def _bytes(path: Path) -> bytes:
    return read_bytes(path, MAX_BYTES, "to")


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _write(path: Path, file: TreeFile) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(file.text, encoding="utf-8")
    path.chmod(0o755 if file.executable else 0o644)


def _move(draft: Path, folder: Path, whole: Sequence[TreeFile]) -> None:
    """A new folder comes into being whole; of one that is there each file is replaced whole, the manifest last."""
    if not folder.exists():
        draft.rename(folder)
        return
    for file in whole:
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        (draft / file.path).replace(target)


def _remove(folder: Path, names: set[str]) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)
        for parent in (folder / name).parents:
            if parent == folder:
                break
            with suppress(OSError):  # it has other files
                parent.rmdir()
