"""The command line: parse, call, print."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import typer

from banditune.cli.app import app
from banditune.cli.attend import ENDED, INTERRUPTED, Ended, complain, leave, listen

__all__ = ["app", "main"]

PIPE_CLOSED = 141
"""As a shell tells SIGPIPE."""

for _commands in ("study", "logs", "live", "exact", "look", "paper"):  # in the order of the help
    import_module(f"banditune.cli.{_commands}")


def said(error: Any) -> str:
    """What is wrong with the words of a command, by their names; of a wrong value its parser says what must hold."""
    told = str(error.format_message())
    flags = sorted(getattr(getattr(error, "param", None), "opts", ()), key=len)
    if flags and error.message.startswith("must be "):
        return f"{flags[-1]} {error.message}"
    if type(error).__name__ == "NoSuchOption" and error.ctx is not None and error.ctx.parent is None:
        return f"{told.rstrip('.')}; options of a command come after its name, as in: banditune tune --policy ucb1 ..."
    return told


def main() -> None:
    """Run the command line.

    It ends with 0 done, 1 a policy or problem failed, 2 a request that cannot be served, 130 interrupted, 141 a closed
    pipe, 143 SIGTERM.
    """
    from banditune.contracts import BadRequest, Fault

    if len(sys.argv) == 1:
        sys.argv.append("--help")
    listen()
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Ended:
        leave(complain("ended by SIGTERM.", ENDED))
    except BrokenPipeError:
        leave(PIPE_CLOSED)
    except SystemExit as error:
        # The library of the command line takes a reader that has seen enough, as `head`, for a failure.
        if isinstance(error.__context__, BrokenPipeError):
            leave(PIPE_CLOSED)
        raise
    except OSError as error:
        complain(f"the output cannot be written: {error.strerror or error}.", 1)
        leave(1)
    except BadRequest as error:
        code = complain(error, 2)
    except Fault as error:
        code = complain(error, 1)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        # A group without a command is no mistake: what it can do is the answer.
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(error.format_message())
            sys.exit(0)
        code = complain(said(error), 2)
    if code == INTERRUPTED:
        complain("interrupted.", INTERRUPTED)
        leave(INTERRUPTED)
    sys.exit(code or 0)
