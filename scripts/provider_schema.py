"""Distill the arguments of a Terraform provider's resources into the data file that `deploy check` reads.

    pip download --no-deps cdktn-provider-google==21.1.0
    python scripts/provider_schema.py cdktn_provider_google-21.1.0-py3-none-any.whl

The wheel is made from the provider's own schema; the resources are those of the modules that `deploy write` has. An
argument is its type, with ! where it must be there; a block is `max` (0: any number), `required` and its `body`.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tarfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent.parent / "src" / "chipwise" / "deploy" / "data"
BLOCK = re.compile(r'^(resource|data) "(google_\w+)"', re.MULTILINE)
ATTRIBUTES = re.compile(r"const attrs = \{\n(.*?)\n\s*\};", re.DOTALL)
ENTRY = re.compile(
    r"^\s+(\w+): \{\n\s+value: (.*?),\n\s+isBlock: (true|false),\n\s+type: \"(\w+)\",\n\s+storageClassType: \"(\w+)\"",
    re.MULTILINE,
)
PRESENCE = re.compile(r"// (\w+) - computed: (true|false), optional: (true|false), required: (true|false)")
MAPPER = re.compile(r"(\w+)ToHclTerraform\b")
TIMEOUTS = {"timeouts"}


def resources() -> list[tuple[str, str]]:
    """Kind and name of every resource of the modules."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(DATA.glob("gke/**/*.tf")))
    return sorted({pair for text in texts for pair in BLOCK.findall(text)})


def body(code: str, name: str, classes: str, whole: dict[str, str]) -> dict[str, Any]:
    """Arguments and blocks of a resource or of a nested block."""
    required = {word for word, _, _, needed in PRESENCE.findall(classes) if needed == "true"}
    settable = {word for word, _, optional, needed in PRESENCE.findall(classes) if "true" in (optional, needed)}
    out: dict[str, Any] = {}
    for key, value, is_block, kind, storage in ENTRY.findall(code):
        if settable and key not in settable:
            continue
        if is_block == "false":
            out[key] = ({"list": f"list {storage}", "set": f"set {storage}"}.get(kind, storage)) + "!" * (
                key in required
            )
            continue
        inner = [word for word in MAPPER.findall(value) if word not in ("hash", "list")]
        if key in TIMEOUTS or not inner:
            continue
        nested = inner[0]
        many = "listMapperHcl" in value or multiple(whole["text"], nested)
        out[key] = {
            "max": 0 if many else 1,
            "required": key in required,
            "body": body(attributes_of(whole["text"], nested), nested, class_of(whole["text"], nested), whole),
        }
    return out


def multiple(text: str, nested: str) -> bool:
    """Whether a block may be there several times: it has a class for the list of its own."""
    return f"class {nested[0].upper()}{nested[1:]}List extends" in text


def attributes_of(text: str, nested: str) -> str:
    """The attributes that a mapper function writes."""
    at = text.index(f"function {nested}ToHclTerraform(struct)")
    found = ATTRIBUTES.search(text, at)
    assert found is not None
    return found[1]


def class_of(text: str, nested: str) -> str:
    """The class whose comments say what is optional."""
    start = text.index(f"class {nested[0].upper()}{nested[1:]}OutputReference extends")
    end = text.find("\nexports.", start)
    return text[start:end]


def schema_of(files: tarfile.TarFile, kind: str, resource: str) -> dict[str, Any]:
    """The schema of one resource."""
    slug = ("data-" if kind == "data" else "") + resource.replace("_", "-").removeprefix("google-")
    slug = slug.replace("data-", "data-google-", 1) if kind == "data" else slug
    names = [name for name in files.getnames() if name.startswith(f"package/lib/{slug}/") and name.endswith(".js")]
    text = "\n".join(
        member.read().decode() for name in sorted(names) if (member := files.extractfile(name)) is not None
    )
    top = text.rindex("synthesizeHclAttributes()")
    found = ATTRIBUTES.search(text, top)
    assert found is not None, resource
    main = text[text.rindex("extends cdktn.Terraform", 0, top) :]
    return body(found[1], resource, main, {"text": text})


def main(wheel: Path) -> None:
    """Write the data file."""
    with zipfile.ZipFile(wheel) as archive:
        packed = next(name for name in archive.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(archive.read(packed))) as files:
            member = files.extractfile("package/lib/container-node-pool/index.js")
            assert member is not None
            version = re.search(r"providerVersion: '([0-9.]+)'", member.read().decode())
            assert version is not None
            schemas = {f"{kind} {name}": schema_of(files, kind, name) for kind, name in resources()}
    document = {
        "provider": "hashicorp/google",
        "version": version[1],
        "source": wheel.name,
        "date": datetime.now(UTC).date().isoformat(),
    }
    path = DATA / "google_schema.json"
    lines = [f"{json.dumps(name)}: {json.dumps(schemas[name], sort_keys=True)}" for name in sorted(schemas)]
    text = json.dumps(document)[:-1] + ', "resources": {\n' + ",\n".join(lines) + "\n}}\n"
    path.write_text(text, encoding="utf-8")
    print(f"{path}: {len(schemas)} resources, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
