"""Specs and their hashes, provenance, the crash-safe store, and what runs them."""

from teeter.runs.execute import Together, execute, missing_groups
from teeter.runs.failures import Failures
from teeter.runs.on_cores import on_cores
from teeter.runs.provenance import elapsed
from teeter.runs.spec import digest, fields_of
from teeter.runs.store import Run, Store, tidy

__all__ = [
    "Failures",
    "Run",
    "Store",
    "Together",
    "digest",
    "elapsed",
    "execute",
    "fields_of",
    "missing_groups",
    "on_cores",
    "tidy",
]
