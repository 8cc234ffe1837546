"""Clients that are missing, fail, run out of room, or have no lists of packages."""

import os
import shutil
import sys
from dataclasses import replace

import pytest

from teeter.data.packages import FetchFailed, MissingClient, fetch
from tests.data.archives import CONTENT, MADE, files, pin, tar


@pytest.mark.parametrize("kind", ["npm", "deb"])
def test_no_client_on_the_path(kind, cache, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingClient, match=r"this machine has no (npm|dpkg-deb), which numbers 1.0"):
        fetch(pin(kind, b""))
    assert list(cache.iterdir()) == []


def test_a_client_on_a_relative_path(cache, client, tmp_path, monkeypatch):
    archive = tar(CONTENT)
    client(archive)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.environ["PATH"].replace(str(tmp_path / "bin"), "bin"))
    assert files(fetch(pin("npm", archive))) == CONTENT


def test_no_apt_beside_dpkg(cache, client, tmp_path, monkeypatch):
    client(b"")
    (tmp_path / "bin" / "apt-get").unlink()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(MissingClient, match="no apt-get"):
        fetch(pin("deb", b""))


def test_no_pip(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(MissingClient, match="this Python has no pip, .* python -m ensurepip"):
        fetch(pin("pip", b""))
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("kind", ["pip", "npm", "deb"])
@pytest.mark.parametrize(
    ("commands", "message"),
    [
        ("echo half > n; echo no numbers@1.0 >&2; echo see $PWD/numbers.log >&2; exit 1", ": no numbers@1.0$"),
        ("echo no numbers@1.0 >&2; echo good luck >&2; exit 1", ": no numbers@1.0$"),
        ("echo first >&2; echo no network >&2; echo >&2; exit 1", r"\(is this machine online\?\): no network$"),
        ("exit 3", ": exit code 3$"),
        ("true", "left 0 files, expected one archive"),
        ("touch numbers more", "left 2 files, expected one archive"),
    ],
)
def test_a_client_that_fails(kind, commands, message, cache, client):
    client(b"", commands)
    with pytest.raises(FetchFailed, match=message):
        fetch(pin(kind, b""))
    assert list(cache.iterdir()) == []


NPM = """npm warn config init.module Use `--init-module` instead.
npm error code E404
npm error 404 Not Found - GET numbers - Not found
npm error 404 Note that you can also install from a tarball
npm warn numbers is old
npm notice New version of npm available, as of numbers"""
PIP = """ERROR: Could not find a version that satisfies the requirement numbers==1.0
ERROR: No matching distribution found for numbers==1.0
WARNING: There was an error checking the latest version of pip for numbers.
[notice] numbers"""
APT = """W: Unable to read numbers
E: Version '1.0' for 'numbers' was not found
N: numbers may be somewhere else
W: numbers is unsandboxed"""


@pytest.mark.parametrize(
    ("kind", "words", "line"),
    [
        ("npm", NPM, "npm error 404 Not Found - GET numbers - Not found"),
        ("npm", NPM.replace("numbers", "it"), "npm error 404 Note that you can also install from a tarball"),
        ("npm", "npm ERR! no numbers\nnumbers is all there is", "npm ERR! no numbers"),
        ("pip", PIP, "ERROR: No matching distribution found for numbers==1.0"),
        ("deb", APT, "E: Version '1.0' for 'numbers' was not found"),
        ("pip", "WARNING: numbers", "exit code 7"),
    ],
)
def test_the_line_that_says_what_went_wrong(kind, words, line, cache, client, tmp_path):
    (tmp_path / "words").write_text(words)
    client(b"", f"cat {tmp_path}/words >&2; exit 7")
    with pytest.raises(FetchFailed) as caught:
        fetch(pin(kind, b""))
    assert str(caught.value) == f"numbers 1.0 ({kind}) did not come (is this machine online?): {line}"


FULL = r"numbers 1.0 \(\w+\) cannot be kept in {} \(No space left on device\): make room there, or set TEETER_CACHE"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("npm", "npm warn tar TAR_ENTRY_ERROR ENOSPC: no space left on device, write\nnpm error code 1"),
        ("npm", "npm error nospc There appears to be insufficient space on your system to finish."),
        ("pip", "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"),
        ("deb", "E: Write error - write (28: No space left on device)"),
    ],
)
def test_no_room_for_the_client(kind, words, cache, client, tmp_path):
    (tmp_path / "words").write_text(words)
    client(b"", f"cat {tmp_path}/words >&2; exit 7")
    with pytest.raises(FetchFailed, match=FULL.format(cache)):
        fetch(pin(kind, b""))
    assert list(cache.iterdir()) == []


def test_less_room_than_the_package_takes(cache, client, monkeypatch):
    client(b"", "echo something else >&2; exit 1")
    usage = shutil.disk_usage(cache.parent.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage._replace(free=999))
    with pytest.raises(FetchFailed, match=FULL.format(cache)):
        fetch(replace(pin("npm", b""), size=1000))
    with pytest.raises(FetchFailed, match="something else"):
        fetch(replace(pin("npm", b""), size=999))


def test_a_client_that_does_not_start(cache, client, tmp_path):
    client(b"")
    (tmp_path / "bin" / "npm").write_bytes(b"\x7fELF nonsense")
    with pytest.raises(FetchFailed, match="npm, which numbers .* does not start: Exec format error"):
        fetch(pin("npm", b""))
    assert list(cache.iterdir()) == []


def test_a_debian_package_that_dpkg_does_not_unpack(cache, client, tmp_path):
    client(b"")
    (tmp_path / "bin" / "dpkg-deb").write_text("#!/bin/sh\necho not a Debian archive >&2\nexit 2\n")
    with pytest.raises(FetchFailed, match="numbers .* does not unpack: not a Debian archive"):
        fetch(pin("deb", b""))
    assert list(cache.iterdir()) == []


def test_a_machine_without_package_lists_makes_its_own(cache, client, tmp_path):
    archive = tar(CONTENT)
    commands = f"""
        for word; do case "$word" in
            Dir::State::lists=*) lists="${{word#*=}}";;
            update) test -d "$lists/partial" && touch "$lists/main"; exit 1;;
        esac; done
        if test -e "$lists/main"; then cp {tmp_path}/served numbers_1.0.deb
        else touch numbers_half; echo no lists >&2; exit 100; fi"""
    client(archive, commands)
    assert files(fetch(pin("deb", archive))) == CONTENT


def test_when_lists_of_its_own_do_not_help_either_the_first_trouble_is_told(cache, client):
    client(b"", 'case "$*" in *State::lists*) echo empty lists >&2;; *) echo no such host >&2;; esac; exit 100')
    with pytest.raises(FetchFailed, match=": no such host$"):
        fetch(pin("deb", b""))
    assert list(cache.iterdir()) == []


def test_clients_are_told_to_run_nothing(cache, client, tmp_path):
    client(b"", f'echo "$@" >> {tmp_path}/words; env | grep TMPDIR >> {tmp_path}/words; exit 1')
    for kind in MADE:
        with pytest.raises(FetchFailed):
            fetch(pin(kind, b""))
    words = (tmp_path / "words").read_text()
    assert "--only-binary :all:" in words  # a wheel has no build to run
    assert "pack --ignore-scripts" in words
    assert "install" not in words
    assert words.count("TMPDIR=" + str(cache)) == 5  # once for pip, once for npm, three times for apt-get
