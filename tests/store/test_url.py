"""Places: a folder, S3, memory, and a store that writes in place; clear errors for all else."""

from __future__ import annotations

import errno
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import ConfigError, MissingExtraError, ObjectStoreError, ScoresError
from pipeline.store.filesystem import open_filesystem
from pipeline.store.place import Folder, is_url, open_place, without_file_scheme
from pipeline.store.url import Url

fsspec = pytest.importorskip("fsspec")


@pytest.fixture(params=["s3", "memory", "inplace"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Url:
    if request.param == "s3":
        return Url.parse(f"{request.getfixturevalue('s3')}/")
    if request.param == "memory":
        return Url.parse(f"memory://a b/{tmp_path.name}")
    register_inplace()
    return Url.parse(f"inplace://{tmp_path}/a b/ü")


def register_inplace() -> None:
    """``inplace://``: a file that is being written is there in part, as over SFTP."""
    from fsspec.implementations.local import LocalFileSystem

    class InPlace(LocalFileSystem):  # type: ignore[misc]
        protocol = "inplace"
        broken = False

        @classmethod
        def _strip_protocol(cls, path: Any) -> Any:
            return str(path).removeprefix("inplace://").rstrip("/") or "/"

        def put_file(self, source: str, target: str, **how: Any) -> None:
            content = Path(source).read_bytes()
            Path(target).write_bytes(content[: len(content) // 2])
            if InPlace.broken:
                raise ConnectionResetError("the line was cut")
            Path(target).write_bytes(content)

    fsspec.register_implementation("inplace", InPlace, clobber=True)
    open_filesystem.cache_clear()


def test_what_is_written_is_there(place: Url, tmp_path: Path) -> None:
    assert place.sizes() == {}
    place.write("run.json", b"first", new=True)
    with pytest.raises(FileExistsError):
        place.write("run.json", b"second", new=True)
    (tmp_path / "source").write_bytes(b"0123456789")
    place.put("tokenizer/tokenizer.json", tmp_path / "source")
    place.put("chunk 0", tmp_path / "source")
    assert place.sizes() == {"run.json": 5, "tokenizer/tokenizer.json": 10, "chunk 0": 10}
    place.write("run.json", b"2nd")
    again = pickle.loads(pickle.dumps(place))
    assert again == place
    assert again.read("run.json") == b"2nd"
    assert again.read_all(["run.json", "chunk 0"]) == {"run.json": b"2nd", "chunk 0": b"0123456789"}
    assert again.read_all([]) == {}
    with again.local("chunk 0") as path:
        assert path.read_bytes() == b"0123456789"
    assert not path.exists()
    place.remove(["chunk 0", "nothing"])
    assert place.sizes() == {"run.json": 3, "tokenizer/tokenizer.json": 10}
    for missing in (lambda: place.read("x"), lambda: place.local("x").__enter__()):
        with pytest.raises(FileNotFoundError):
            missing()
    # What only begins with the same letters is another place.
    assert Url.parse(f"{place}x").sizes() == {}


def test_a_copy_is_fetched_once_and_again_when_it_was_altered(place: Url, tmp_path: Path) -> None:
    from pipeline.store.chunk import file_sha256

    (tmp_path / "source").write_bytes(b"0123456789")
    sha256 = file_sha256(tmp_path / "source")
    place.put("chunk", tmp_path / "source")
    keeping = place.keeping(tmp_path / "cache")
    with keeping.local("chunk", sha256) as path:
        assert path.read_bytes() == b"0123456789"
    place.remove(["chunk"])
    with keeping.local("chunk", sha256) as kept:
        assert kept == path
    path.write_bytes(b"altered")
    with pytest.raises(FileNotFoundError):
        keeping.local("chunk", sha256).__enter__()
    place.put("chunk", tmp_path / "source")
    with keeping.local("chunk", sha256) as path:
        assert path.read_bytes() == b"0123456789"


def test_where_a_put_can_be_cut_the_final_name_is_whole(tmp_path: Path) -> None:
    register_inplace()
    place = Url.parse(f"inplace://{tmp_path}/set")
    (tmp_path / "source").write_bytes(b"0123456789")
    place.put("chunk", tmp_path / "source")
    files = fsspec.filesystem("inplace")
    type(files).broken = True
    (tmp_path / "source").write_bytes(b"abcdefghij")
    with pytest.raises(ObjectStoreError, match="ConnectionResetError: the line was cut; check the"):
        place.put("chunk", tmp_path / "source")
    assert place.sizes() == {"chunk": 10}
    assert place.read("chunk") == b"0123456789"


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("nosuch://x/y", ConfigError, "nosuch://x/y is not a URL that can be used: Protocol not"),
        ("s3://bucket/", ConfigError, "names a bucket and nothing in it.*as s3://bucket/run"),
        ("s3://bucket//run", ConfigError, "two slashes behind the bucket's name; leave one out"),
        # What fsspec takes for a path.
        ("s3://", ConfigError, "s3:// names no set"),
        ("memory:///", ConfigError, "memory:/// names no set"),
        ("file://host/x", ConfigError, "file://host/x is no URL of an object store; name the path"),
        ("local://x", ConfigError, "name the path"),
        # What asks its store, or wants more than a URL, when it is opened.
        ("zip://a::memory://nowhere.zip", ObjectStoreError, "cannot be opened: FileNotFoundError"),
        ("reference://x", ObjectStoreError, "cannot be opened: TypeError"),
        ("sftp://host/x", MissingExtraError, "sftp:// with is not installed.*paramiko"),
    ],
)
def test_urls_that_cannot_be_used(
    url: str, error: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "paramiko", None)  # installed or not
    with pytest.raises(error, match=message):
        Url.parse(url)


def test_a_password_is_not_printed() -> None:
    pytest.importorskip("aiohttp")
    place = Url.parse("http://me:secret@127.0.0.1:1/run")
    assert str(place) == "http://me:***@127.0.0.1:1/run"
    assert place.at("run.json") == "http://me:***@127.0.0.1:1/run/run.json"
    with pytest.raises(ObjectStoreError, match=r"^http://me:\*\*\*@127") as caught:
        place.read("run.json")
    assert "secret" not in str(caught.value)
    assert Url.parse("memory://a@b/c:d@e").at("x") == "memory://a@b/c:d@e/x"


def test_what_the_library_says_is_told_although_it_begins_with_a_heading(s3: str) -> None:
    with pytest.raises(ObjectStoreError, match="validation failed: Invalid bucket name"):
        Url.parse("s3://me:secret@bucket/run").sizes()


def test_a_full_disk_here_is_not_the_stores_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Url.parse(f"memory://{tmp_path.name}")
    place.write("chunk", b"0")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(place._open()[0], "get_file", full)
    with pytest.raises(OSError, match="No space left") as caught, place.local("chunk"):
        pass
    assert caught.value.errno == errno.ENOSPC


@pytest.mark.parametrize("cache", ["file/cache", "/proc/nowhere/cache"])
def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, cache: str) -> None:
    (tmp_path / "file").touch()
    place = Url.parse(f"memory://{tmp_path.name}").keeping(tmp_path / cache)
    place.write("chunk", b"0")
    with (
        pytest.raises(ScoresError, match=r"the cache .* cannot be written: .*--no-cache"),
        place.local("chunk", "0" * 64),
    ):
        pass


def test_a_store_that_finds_no_place_to_write_is_an_error_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Url.parse(f"memory://{tmp_path.name}")

    def nowhere(*_: object, **__: object) -> None:
        raise FileNotFoundError("Not Found")

    monkeypatch.setattr(place._open()[0], "pipe_file", nowhere)
    with pytest.raises(ObjectStoreError, match="cannot be written: FileNotFoundError: Not Found"):
        place.write("run.json", b"", new=True)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    open_filesystem.cache_clear()
    with pytest.raises(MissingExtraError, match=r"extra \[s3\] \(fsspec, s3fs not installed\)"):
        open_place("s3://bucket/run")
    with pytest.raises(MissingExtraError, match=r"extra \[s3\] \(fsspec not installed\)"):
        open_place("memory://run")


def test_a_bucket_that_is_not_there(s3: str, tmp_path: Path) -> None:
    place = Url.parse("s3://no-bucket/run")
    (tmp_path / "x").write_bytes(b"x")
    for attempt in (
        place.sizes,
        lambda: place.read("x"),
        lambda: place.write("x", b"", new=True),
        lambda: place.put("x", tmp_path / "x"),
    ):
        with pytest.raises(ObjectStoreError, match=r"^s3://no-bucket/run .*no such bucket"):
            attempt()


def test_paths_and_urls_are_told_apart() -> None:
    for path in ("data/predictions", "/a", "C:\\runs", "C:/runs", "a:b", "./s3:/x"):
        assert not is_url(path)
        assert open_place(path) == Folder(Path(path))
    for url in ("s3://b/r", "memory://x", "simplecache::s3://b/r"):
        assert is_url(url)
    assert without_file_scheme("file:///a b/c") == "/a b/c"
    assert open_place("file:///a b/c") == Folder(Path("/a b/c"))
