"""What chipwise is made of: every dependency's license is listed as its metadata has it, and the bill of materials is valid."""

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# what metadata calls a license -> the words that a list may have for it
SPELLINGS = {
    "Apache": ("Apache",), "BSD": ("BSD",), "MIT": ("MIT",), "ISC": ("ISC",), "MPL": ("MPL", "Mozilla"), "LGPL": ("LGPL",),
    "PSF": ("PSF", "Python Software Foundation"), "NVIDIA": ("NVIDIA",), "Google": ("Google",), "0BSD": ("0BSD",), "Zlib": ("Zlib",),
    "CC0": ("CC0",), "BSL": ("BSL",),
}  # fmt: skip


def normal(name):
    return re.match(r"[A-Za-z0-9_.-]+", name)[0].lower().replace("_", "-")


def listed():
    text = (ROOT / "docs/dependencies.md").read_text().partition("<!-- licenses -->")[2]
    return dict(re.findall(r"^\| (?!package )([a-z0-9-]+) \| ([^|]+) \|", text, re.MULTILINE))


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def locked():
    return {
        normal(line) for line in (ROOT / "requirements/run.txt").read_text().splitlines() if re.match("[a-z0-9]", line)
    }


def test_every_dependency_is_listed_with_its_license():
    wanted = [*project()["dependencies"], *(r for extra in project()["optional-dependencies"].values() for r in extra)]
    assert ({normal(name) for name in wanted} | locked()) - {"chipwise"} <= set(listed())


@pytest.mark.parametrize("name", sorted(listed()))
def test_the_license_is_that_of_the_installed_package(name):
    try:
        about = metadata(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed here: its license can't be compared")
    expression, license = about.get("License-Expression"), listed()[name].strip()
    if expression and "LicenseRef" not in expression:
        assert license == expression
        return
    said = [expression or "", (about.get("License") or "")[:200], *about.get_all("Classifier", [])]
    words = " ".join(word for word in said if not word.startswith(("Programming", "Operating")))
    named = [spellings for short, spellings in SPELLINGS.items() if short in license]
    if name == "llm-analysis":
        return  # its metadata says both Apache-2.0 and proprietary; its LICENSE file is Apache-2.0
    assert named and any(word in words for spellings in named for word in spellings), words


def test_the_bill_of_materials_is_valid_and_has_every_version_that_is_run_on(tmp_path):
    pytest.importorskip("cyclonedx_py", reason="cyclonedx-bom is not installed: pip install -e '.[dev]'")
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    recipe = re.search(r"^sbom:.*\n\t\$\(BIN\)/python (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    words = [str(tmp_path / "sbom.json") if word == "sbom.json" else word for word in recipe.split()]
    texts = []
    for _ in range(2):
        subprocess.run([sys.executable, *words], cwd=ROOT, check=True, capture_output=True)
        texts.append((tmp_path / "sbom.json").read_text())
    assert texts[0] == texts[1]
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(texts[0]) is None
    document = json.loads(texts[0])
    assert document["bomFormat"] == "CycloneDX" and document["metadata"]["component"]["name"] == "chipwise"
    assert {normal(part["name"]) for part in document["components"]} == locked()
    assert all(part.get("version") for part in document["components"])
