"""The one app that all commands are part of, how it ends, and what they share."""

from __future__ import annotations

import io
import json
import os
import sys
from typing import Annotated, Any, NoReturn

import typer

from teeter.errors import TeeterError
from teeter.memory import keep_freed_memory

__all__ = ["JsonOption", "app", "main", "print_json"]

app = typer.Typer(
    help="How easily does a neural network change its mind?",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

JsonOption = Annotated[bool, typer.Option("--json", help="One JSON value on stdout and nothing else there.")]

# What a command that was interrupted leaves behind.
_RUNS = "stopped; finished runs are kept and the same command goes on from there"
_STOPPED = {"study": _RUNS, "demo": _RUNS, "": "stopped; nothing is left half-written"}


def main() -> NoReturn:
    """Run the command line; whatever a user can mend ends in one line on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ✓ gets ? instead of an error
    keep_freed_memory()
    stopped = _STOPPED.get(next((word for word in sys.argv[1:] if not word.startswith("-")), ""), _STOPPED[""])
    try:
        code = app(standalone_mode=False, prog_name="teeter") or 0
    except TeeterError as problem:
        if os.environ.get("TEETER_TRACEBACK"):
            raise
        _fail(str(problem))
    except (KeyboardInterrupt, typer.Abort):
        _fail(stopped, code=130)
    except SystemExit as end:  # some versions of typer end an interrupted command themselves
        code = end.code
    except OSError as problem:
        where = f": {problem.filename}" if problem.filename else ""
        _fail(f"{problem.strerror or problem}{where}")
    except Exception as problem:
        usage = getattr(problem, "format_message", None)  # what typer raises for a command line it cannot read
        if usage is not None:
            where = getattr(problem, "ctx", None)
            _fail(f"{usage().rstrip('.')}. Try '{where.command_path if where else 'teeter'} --help'.")
        if os.environ.get("TEETER_TRACEBACK"):
            raise
        words = str(problem).partition("\n")[0]
        _fail(f"{type(problem).__name__}: {words} (a bug in teeter; TEETER_TRACEBACK=1 shows where)")
    if isinstance(code, int) and code > 128:  # ended by a signal: 130 is Ctrl-C
        _fail(stopped, code=code)
    sys.exit(code)


def _fail(message: str, code: int = 2) -> NoReturn:
    print("teeter: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(code)


def print_json(value: Any) -> None:
    """The one thing a command with --json puts on stdout."""
    print(json.dumps(value, indent=1))


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        import teeter

        print(teeter.__version__)
    elif context.invoked_subcommand is None:
        print(context.get_help())
