import os
import sys

import pytest


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TEETER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "packages"


@pytest.fixture
def client(tmp_path, monkeypatch):
    """Put a stand-in for the clients in front of the real ones: it hands over the archive, or does as it is told."""
    bin = tmp_path / "bin"
    bin.mkdir()
    monkeypatch.setenv("PATH", f"{bin}{os.pathsep}{os.environ['PATH']}")

    def script(name, commands):
        (bin / name).write_text(f"#!/bin/sh\n{commands}\n")
        (bin / name).chmod(0o755)
        return str(bin / name)

    def install(archive, commands=None):
        (tmp_path / "served").write_bytes(archive)
        words = commands or f"echo asked >> {tmp_path}/asked; cp {tmp_path}/served numbers-1.0"
        script("npm", words)
        script("apt-get", words)
        script("dpkg-deb", 'cat "$2"')
        monkeypatch.setattr(sys, "executable", script("python", words))

    return install
