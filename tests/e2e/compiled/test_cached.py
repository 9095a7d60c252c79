"""The cache with real compiles: what is found again, and what makes a compile stale."""

import json
import shutil
import subprocess
import sys

import pytest
from real_jobs import HERE, job

from chipwise.compiled.cache import MODULE, RESULT, Cache
from chipwise.compiled.compiler import compile_job, kept_job, module_text
from chipwise.compiled.job import Compiled, Refused
from chipwise.compiled.worker import keys

pytestmark = pytest.mark.compiler("tpu")
PROGRAM = """
import json
from pathlib import Path

import jax
import jax.numpy as jnp
from sizes import ROWS

COLUMNS = json.loads((Path(__file__).parent / "columns.json").read_text())


def make():
    return (lambda x: jnp.tanh(x).sum()), (jax.ShapeDtypeStruct((ROWS, COLUMNS), jnp.float32),)
"""


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory):
    """A user's program of three files, compiled into a cache."""
    base = tmp_path_factory.mktemp("program")
    place = base / "mine"
    place.mkdir()
    (place / "program.py").write_text(PROGRAM)
    (place / "sizes.py").write_text("ROWS = 256\n")
    (place / "columns.json").write_text("512")
    return place, compile_job(job("program:make", folder=place), cache=Cache(base / "cache"))


@pytest.fixture
def folder(compiled_once):
    return compiled_once[0]


@pytest.fixture
def first(compiled_once):
    return compiled_once[1]


@pytest.fixture
def cache(tmp_path, compiled_once):
    """A copy of that cache, for one test."""
    shutil.copytree(compiled_once[0].parent / "cache", tmp_path / "cache")
    return Cache(tmp_path / "cache")


def arguments(outcome):
    assert isinstance(outcome, Compiled)
    return outcome.memory["arguments"]


def test_the_same_program_is_compiled_once_until_a_file_it_uses_changes(folder, first, cache):
    asked = job("program:make", folder=folder)
    again = compile_job(asked, cache=cache)
    assert (first.cached, again.cached, again.schedule) == (False, True, first.schedule)
    assert "ENTRY" in module_text(asked, cache)
    (folder / "unrelated.py").write_text("")
    assert compile_job(asked, cache=cache).cached

    for name, text, times in (("columns.json", "1024", 2), ("sizes.py", "ROWS = 512\n", 2)):
        before = (folder / name).read_text()
        (folder / name).write_text(text)
        changed = compile_job(asked, cache=cache)
        assert (changed.cached, arguments(changed)) == (False, times * arguments(first))
        (folder / name).write_text(before)
    assert compile_job(asked, cache=cache).cached


def test_another_target_option_or_mesh_is_another_entry(folder, cache):
    assert kept_job(job("program:make", folder=folder, on="v6e:1"), cache) is None
    for each in ({"on": "v6e:1"}, {"options": {"xla_tpu_scoped_vmem_limit_kib": "32768"}}):
        assert not compile_job(job("program:make", folder=folder, **each), cache=cache).cached
    assert kept_job(job("program:make", folder=folder, on="v6e:1"), cache).cached
    assert sorted(entry.target for entry in cache.entries()) == ["v5e:1x1", "v5e:1x1", "v6e:1x1"]


def test_a_refusal_is_kept_and_given_again(cache):
    first = compile_job(job("refused:branch"), cache=cache)
    assert ("refused", "refused:branch") in {(entry.outcome, entry.program) for entry in cache.entries()}
    again = compile_job(job("refused:branch"), progress=lambda *_: pytest.fail("compiled again"), cache=cache)
    assert isinstance(again, Refused)
    assert again == first


def test_a_broken_entry_is_said_and_compiled_again(folder, cache):
    asked = job("program:make", folder=folder)
    (entry,) = cache.entries()
    path = cache.root / "entries" / entry.key / RESULT
    path.write_text(path.read_text()[:100])
    again = compile_job(asked, cache=cache)
    assert not again.cached
    assert any("a broken cache entry was removed" in note for note in again.notes)
    assert compile_job(asked, cache=cache).cached


def test_a_newer_reader_reads_the_stored_module_again_without_compiling(folder, first, cache):
    asked = job("program:make", folder=folder)
    (entry,) = cache.entries()
    path = cache.root / "entries" / entry.key / RESULT
    stored = json.loads(path.read_text())
    stored["compiled"]["schedule"], stored["extractor"] = {"from": "an older chipwise"}, "older"
    path.write_text(json.dumps(stored))
    again = compile_job(asked, progress=lambda *_: pytest.fail("compiled again"), cache=cache)
    assert again.cached
    assert again.schedule == first.schedule
    assert json.loads(path.read_text())["extractor"] == keys.extractor_hash()
    assert (path.parent / MODULE).exists()


def test_a_cached_answer_imports_no_compiler(folder, cache):
    script = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
from pathlib import Path
from real_jobs import job
from chipwise.compiled.cache import Cache
from chipwise.compiled.compiler import compile_job
print(compile_job(job("program:make", folder=Path({str(folder)!r})), cache=Cache(Path({str(cache.root)!r}))).cached)
print([name for name in ("jax", "jaxlib", "torch", "libtpu") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n[]\n"
