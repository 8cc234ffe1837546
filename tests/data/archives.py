"""Small archives of every kind, and what pins them."""

import hashlib
import io
import tarfile
import zipfile

from teeter.data.packages import Package

CONTENT = {"package/package.json": b"{}", "package/data/numbers.txt": b"1 2 3\n" * 1000}


def member(name, **fields):
    info = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(info, key, value)
    return info


def tar(content, extra=()):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as file:
        for name, data in content.items():
            file.addfile(member(name, size=len(data)), io.BytesIO(data))
        for info in extra:
            file.addfile(info)
    return buffer.getvalue()


def wheel(content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in content.items():
            file.writestr(name, data)
    return buffer.getvalue()


MADE = {"pip": wheel, "npm": tar, "deb": tar}  # the stand-in for dpkg-deb takes a tar file for a Debian package


def pin(client, archive):
    return Package(client, "numbers", "1.0", hashlib.sha256(archive).hexdigest())


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
