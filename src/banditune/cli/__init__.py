"""The command line: commands parse their options, call the public functions and print the results."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import typer

from banditune.cli.app import app
from banditune.cli.runner import (
    EXIT_INTERRUPTED,
    EXIT_TERMINATED,
    Terminated,
    exit_now,
    install_sigterm_handler,
    print_to_stderr,
)

EXIT_PIPE_CLOSED = 141
"""The exit code of a shell for SIGPIPE."""


for _commands in ("study", "log", "deployment", "exact", "inspect", "paper"):  # in the order of the help
    import_module(f"banditune.cli.{_commands}_commands")


def format_usage_error(error: Any) -> str:
    """Format a usage error with the names of options. The message of a wrong value is that of its parser."""
    message = str(error.format_message())
    flags = sorted(getattr(getattr(error, "param", None), "opts", ()), key=len)
    if flags and error.message.startswith("must be "):
        return f"{flags[-1]} {error.message}"
    if type(error).__name__ == "NoSuchOption" and error.ctx is not None and error.ctx.parent is None:
        return (
            f"{message.rstrip('.')}; options of a command come after its name, as in: banditune tune --policy ucb1 ..."
        )
    return message


def main() -> None:
    """Run the command line.

    The exit status is 0 after success, 1 if a policy or a problem failed, 2 for a request that cannot be served, 130 after
    an interrupt, 141 for a closed pipe, and 143 after SIGTERM.
    """
    from banditune.core.errors import BanditTuneError, InvalidRequest, MissingDependency, StoreError

    if len(sys.argv) == 1:
        sys.argv.append("--help")
    install_sigterm_handler()
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        code = EXIT_INTERRUPTED
    except Terminated:
        exit_now(print_to_stderr("ended by SIGTERM.", EXIT_TERMINATED))
    except BrokenPipeError:
        exit_now(EXIT_PIPE_CLOSED)
    except SystemExit as error:
        # For Typer it is a failure if a reader such as `head` closes the pipe early.
        if isinstance(error.__context__, BrokenPipeError):
            exit_now(EXIT_PIPE_CLOSED)
        raise
    except (InvalidRequest, MissingDependency, StoreError) as error:
        code = print_to_stderr(error, 2)
    except BanditTuneError as error:
        code = print_to_stderr(error, 1)
    except OSError as error:
        print_to_stderr(f"the output cannot be written: {error.strerror or error}.", 1)
        exit_now(1)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        # A group without a command prints its help, which is not an error.
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(error.format_message())
            sys.exit(0)
        code = print_to_stderr(format_usage_error(error), 2)
    if code == EXIT_INTERRUPTED:
        print_to_stderr("interrupted.", EXIT_INTERRUPTED)
        exit_now(EXIT_INTERRUPTED)
    sys.exit(code or 0)
