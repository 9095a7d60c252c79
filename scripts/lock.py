"""Write the lock files in requirements/, for every Linux and every Python that chipwise runs on. Run by `make lock`.

build.txt and run.txt have what chipwise is built with and runs on, with the hashes of every wheel; dev.txt has the
versions of what the tests use, as constraints. PyTorch, JAX and the vendors' libraries below them are left to the
wheels of the platform: a machine may have builds of its own. No file names an index.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
OLDEST = "3.11"
EDITABLE = "editables>=0.5"  # what hatchling asks for besides when a checkout is installed with `pip install -e`
# the platform's own
LEFT = re.compile(r"(torch|triton|jax|jaxlib|jax-.+|libtpu|cuda-.+|nvidia-(?!ml-py).+)==")


def compiled(*arguments: str) -> str:
    """What uv resolves, for all platforms and Pythons at once."""
    line = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "compile",
        "-q",
        "--universal",
        "--python-version",
        OLDEST,
        "--upgrade",
        "--no-header",
        "--no-annotate",
        *arguments,
    ]
    return subprocess.run(line, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def write(name: str, title: str, text: str) -> None:
    """One lock file, whole or not at all."""
    path = FOLDER / name
    new = path.with_suffix(".new")
    new.write_text(f"# {title}. Written by `make lock`.\n{text}", encoding="utf-8")
    new.replace(path)
    print(f"wrote {path.relative_to(ROOT)}: {len(re.findall('^[a-z0-9]', text, re.MULTILINE))} versions")


def main() -> None:
    """Resolve everything together, then take from it what each file is for."""
    FOLDER.mkdir(exist_ok=True)
    versions = compiled("pyproject.toml", "--extra", "dev")
    with tempfile.TemporaryDirectory() as folder:
        together, build = Path(folder, "together.txt"), Path(folder, "build.in")
        together.write_text(versions, encoding="utf-8")
        built_with = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
        build.write_text("\n".join([*built_with, EDITABLE]), encoding="utf-8")
        hashed = ("--generate-hashes", "-c", str(together))
        write("build.txt", "What chipwise is built with", compiled(str(build), *hashed))
        write("run.txt", "What chipwise runs on", compiled("pyproject.toml", *hashed))
    kept = [line for line in versions.splitlines(keepends=True) if not LEFT.match(line)]
    write("dev.txt", "Versions of what the tests use, as constraints", "".join(kept))


if __name__ == "__main__":
    main()
