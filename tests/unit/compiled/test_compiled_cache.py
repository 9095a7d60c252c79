"""The cache's folder: whole entries, broken ones, size, races. No compiler is needed."""

import gzip
import os
import threading

import pytest

from chipwise.compiled import cache as cache_module
from chipwise.compiled.cache import MODULE, RESULT, Cache, default_cache
from chipwise.compiled.worker.keys import Sources
from chipwise.errors import BrokenFile, InputError
from patience import PATIENCE_S


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache")


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "module.gz"
    path.write_bytes(gzip.compress(b"HloModule m"))
    return path


def outcome(name="a", **more):
    return {"compiled": {"name": name}, "program": name, "target": "v5e:1x1", **more}


def test_what_is_put_is_found(cache, module):
    assert cache.put("key", outcome(), module) == ""
    stored, note = cache.get("key")
    assert (stored["compiled"], note) == ({"name": "a"}, "")
    assert cache.module_text("key") == "HloModule m"
    assert cache.get("other") == (None, "")
    assert not list(cache.root.glob("part-*"))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"schema": 1}', '{"schema": 0, "compiled": {}, "module_bytes": 0}', "\x00" * 50]
)
def test_a_broken_result_is_removed_and_said(cache, text):
    cache.put("key", outcome(), None)
    (cache.root / "entries" / "key" / RESULT).write_text(text)
    stored, note = cache.get("key")
    assert stored is None
    assert note.startswith("a broken cache entry was removed")
    assert cache.get("key") == (None, "")


def test_an_entry_without_its_result_is_removed_and_said(cache):
    cache.put("key", outcome(), None)
    (cache.root / "entries" / "key" / RESULT).unlink()
    stored, note = cache.get("key")
    assert (stored, "removed" in note) == (None, True)


def test_a_module_cut_short_is_removed_and_said(cache, module):
    cache.put("key", outcome(), module)
    path = cache.root / "entries" / "key" / MODULE
    path.write_bytes(path.read_bytes()[:-3])
    stored, note = cache.get("key")
    assert (stored, "cut short" in note) == (None, True)


def test_a_module_that_can_not_be_unpacked_is_removed(cache, module):
    cache.put("key", outcome(), module)
    path = cache.root / "entries" / "key" / MODULE
    path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(BrokenFile, match="module that can be read"):
        cache.module_text("key")
    assert cache.get("key") == (None, "")


def test_the_second_of_two_writers_gives_way(cache):
    assert cache.put("key", outcome("first"), None) == ""
    assert cache.put("key", outcome("second"), None) == ""
    assert cache.get("key")[0]["program"] == "first"
    assert not list(cache.root.glob("part-*"))


def test_the_least_recently_used_goes_when_the_limit_is_passed(tmp_path, module):
    module.write_bytes(os.urandom(10_000))
    cache = Cache(tmp_path / "cache", limit_bytes=35_000)
    for age, key in ((40, "a"), (30, "b"), (20, "c")):
        cache.put(key, outcome(key), module)
        path = cache.root / "entries" / key / RESULT
        os.utime(path, (path.stat().st_mtime - age, path.stat().st_mtime - age))
    cache.get("a")  # used now
    cache.put("d", outcome("d"), module)
    assert {entry.key for entry in cache.entries()} == {"a", "c", "d"}


def test_an_entry_larger_than_the_limit_is_kept_alone(tmp_path, module):
    module.write_bytes(os.urandom(10_000))
    cache = Cache(tmp_path / "cache", limit_bytes=5_000)
    cache.put("a", outcome("a"), module)
    cache.put("b", outcome("b"), module)
    assert [entry.key for entry in cache.entries()] == ["b"]


def test_entries_are_listed_and_cleared(cache, module):
    assert cache.entries() == []
    cache.put("a", outcome("program:a"), module)
    cache.put("b", {"refused": {}, "program": "program:b", "target": "v6e:2x2"}, None)
    cache.put_sources("request", Sources(("/x.py",), ("flax",)))
    listed = {(entry.program, entry.target, entry.outcome) for entry in cache.entries()}
    assert listed == {("program:a", "v5e:1x1", "compiled"), ("program:b", "v6e:2x2", "refused")}
    size = sum(entry.bytes for entry in cache.entries())
    assert cache.clear() == size > 0
    assert cache.entries() == []
    assert cache.sources("request") is None


def test_what_a_dead_process_left_is_swept(cache):
    cache.put("a", outcome(), None)
    old = cache.root / "part-old"
    old.mkdir()
    os.utime(old, (0, 0))
    fresh = cache.root / "part-fresh"
    fresh.mkdir()
    cache.put("b", outcome(), None)
    assert (old.exists(), fresh.exists()) == (False, True)


def test_sources_are_remembered(cache):
    assert cache.sources("request") is None
    sources = Sources(("/a.py", "/b.json"), ("flax",))
    assert cache.put_sources("request", sources) == ""
    assert cache.sources("request") == sources
    (cache.root / "sources" / "request.json").write_text("{")
    assert cache.sources("request") is None


def test_a_root_that_is_a_file_is_said(tmp_path, module):
    (tmp_path / "cache").write_text("")
    cache = Cache(tmp_path / "cache")
    assert cache.get("key") == (None, "")
    assert cache.put("key", outcome(), module).startswith("not cached: ")
    assert cache.put_sources("request", Sources()).startswith("not cached: ")
    with cache.lock("request", lambda: pytest.fail("nobody else has it")):
        pass


def test_one_holder_at_a_time(cache):
    waited = threading.Event()
    done = []

    def second():
        with cache.lock("request", waited.set):
            done.append("second")

    with cache.lock("request", lambda: None), cache.lock("another request", lambda: pytest.fail("not held")):
        thread = threading.Thread(target=second)
        thread.start()
        assert waited.wait(PATIENCE_S)
        done.append("first")
    thread.join(PATIENCE_S)
    assert done == ["first", "second"]


def test_an_interrupted_wait_lets_go(cache):
    def interrupt():
        raise KeyboardInterrupt

    with cache.lock("request", lambda: None), pytest.raises(KeyboardInterrupt), cache.lock("request", interrupt):
        pass
    with cache.lock("request", lambda: pytest.fail("not held")):
        pass


def test_where_the_cache_lies(monkeypatch, tmp_path):
    monkeypatch.delenv("CHIPWISE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache().root == tmp_path / "chipwise" / "compiled"
    monkeypatch.setenv("CHIPWISE_CACHE", str(tmp_path / "mine"))
    monkeypatch.setenv("CHIPWISE_CACHE_BYTES", "1000")
    assert (default_cache().root, default_cache().limit_bytes) == (tmp_path / "mine", 1000)
    monkeypatch.setenv("CHIPWISE_CACHE_BYTES", "1 GB")
    with pytest.raises(InputError, match="CHIPWISE_CACHE_BYTES"):
        default_cache()
    assert cache_module.DEFAULT_BYTES == 2_000_000_000
