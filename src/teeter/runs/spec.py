"""What identifies a run: the study, its revision and every field of the spec."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from typing import Any

from teeter.errors import InputError

__all__ = ["digest", "fields_of"]


def fields_of(spec: Any) -> dict[str, str | int | float | bool | None]:
    """The fields of a frozen dataclass of scalars, in their order."""
    if not dataclasses.is_dataclass(spec) or isinstance(spec, type) or not type(spec).__dataclass_params__.frozen:  # pyright: ignore[reportAttributeAccessIssue]
        raise InputError(f"a spec is an instance of a frozen dataclass, got {spec!r}")
    fields = {field.name: getattr(spec, field.name) for field in dataclasses.fields(spec)}
    for name, value in fields.items():
        if not isinstance(value, str | int | float | bool | None) or (isinstance(value, float) and math.isnan(value)):
            raise InputError(f"a spec holds plain scalars, got {name} = {value!r}")
    return fields


def digest(study: str, revision: int, spec: Any) -> str:
    """Sixteen hexadecimal digits that stand for this run, whatever the process, machine or field order.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Spec:
    ...     n: int
    >>> digest("example", 1, Spec(3))
    '49ff414241e23fd4'
    """
    text = json.dumps({"study": study, "revision": revision, "spec": fields_of(spec)}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
