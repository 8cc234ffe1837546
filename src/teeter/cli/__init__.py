"""The command line. Heavy imports wait until a command needs them, so that --help answers at once."""

from teeter.cli import data, exact, measuring, studies
from teeter.cli.app import app, main

__all__ = ["app", "data", "exact", "main", "measuring", "studies"]
