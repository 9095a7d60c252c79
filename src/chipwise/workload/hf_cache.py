"""Configs of Hugging Face models in the local cache (`HF_HOME`); nothing is fetched."""

from __future__ import annotations

import os
import re
from pathlib import Path

from chipwise.errors import BrokenFile, InputError
from chipwise.io.files import read_text

PREFIX = "hf:"
MAX_REVISION_BYTES = 1000  # of a file that holds one: a commit has 40
_REVISION = re.compile(r"[\w][\w.-]{0,199}", re.ASCII)
_ID = re.compile(r"[A-Za-z0-9][\w.\-]*/[A-Za-z0-9][\w.\-]*", re.ASCII)


def cache_folder() -> Path:
    """Where huggingface_hub keeps what it fetched: HF_HUB_CACHE, HF_HOME/hub or ~/.cache/huggingface/hub."""
    if hub := os.environ.get("HF_HUB_CACHE"):
        return Path(hub)
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    return Path(home) / "hub"


def is_id(text: str) -> bool:
    """Whether a text reads as ORG/NAME.

    >>> is_id("Qwen/Qwen3-32B"), is_id("qwen3-32b"), is_id("a/b/c")
    (True, False, False)
    """
    return _ID.fullmatch(text.strip()) is not None


def cached_config(text: str) -> Path:
    """The config.json of `hf:ORG/NAME` in the local cache: that of `main`, else of the newest snapshot."""
    name = text.strip().removeprefix(PREFIX)
    if not is_id(name):
        raise InputError("model", text, "hf:ORG/NAME, such as hf:Qwen/Qwen3-32B")
    folder = cache_folder() / f"models--{name.replace('/', '--')}"
    main = folder / "refs" / "main"
    revision = read_text(main, MAX_REVISION_BYTES).strip() if main.exists() else ""
    if revision and not _REVISION.fullmatch(revision):
        raise BrokenFile("file", str(main), "the name of a revision")
    found = [folder / "snapshots" / revision / "config.json"] if revision else []
    if not any(file.is_file() for file in found):
        found = sorted(folder.glob("snapshots/*/config.json"), key=lambda file: (file.stat().st_mtime, str(file)))
    files = [file for file in found if file.is_file()]
    if not files:
        raise InputError(
            "model", text,
            f"a model whose config.json is in the Hugging Face cache; `hf download {name} config.json` puts it there,"
            " or pass the file: --model path/config.json",
        )  # fmt: skip
    return files[-1]
