"""The command line: `sharpwave`. Each command takes `--json`; an error is one line, exit 2 for bad input and 1 for a failure."""

import sys
from functools import cache
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import Abort, Exit, TyperException

from sharpwave.console import Given, err
from sharpwave.memory.errors import ConfigError, InputError, SharpwaveError

app = typer.Typer(
    name="sharpwave",
    help="An agent that remembers: talk to it, look at what it wrote and why, take it back.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"sharpwave {version('sharpwave')}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    home: Annotated[
        Path | None,
        typer.Option("--home", help="Folder of the store. Default: SHARPWAVE_HOME, else the user data folder."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Hold what is given before the command."""
    context.obj = Given(home=home)


@cache
def _register() -> None:
    """Add the commands to the application, once a process however often `main` is called in it."""
    from sharpwave.commands import (
        bench,
        chat,
        context,
        demo,
        entities,
        episodes,
        erase,
        forget,
        ingest,
        memories,
        policy,
        procedures,
        read,
        recall,
        replay,
        sessions,
        upkeep,
    )

    memory = (ingest, read, recall, context, memories, entities, episodes, procedures, sessions)
    for module in (demo, chat, *memory, replay, forget, erase, upkeep, policy, bench):
        module.register(app)


def main() -> None:
    """Run the command line."""
    _register()
    try:
        code = app(standalone_mode=False)
    except (ConfigError, InputError) as error:
        _end(str(error), 2)
    except SharpwaveError as error:
        _end(str(error), 1)
    except Exit as ending:
        sys.exit(ending.exit_code)
    except Abort:
        _end("Interrupted.", 130)
    except TyperException as error:
        _end(error.format_message(), 2)
    sys.exit(code if isinstance(code, int) else 0)


def _end(message: str, code: int) -> None:
    err.print(f"sharpwave: {' '.join(message.split())}", style="red", markup=False)
    sys.exit(code)


if __name__ == "__main__":
    main()
