"""Runs the Python of pages: each snippet as a script in a folder of its own, all of them in one process beside the tests."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_RUN = """
import contextlib, io, json, os, sys, traceback

answers = []
for number, snippet in enumerate(json.load(sys.stdin)):
    os.mkdir(str(number))
    os.chdir(str(number))
    printed, error = io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(snippet, "snippet", "exec", dont_inherit=True), {"__name__": "__main__"})
        except Exception:
            error = traceback.format_exc()
    answers.append([printed.getvalue(), error])
    os.chdir("..")
print(json.dumps(answers))
"""


class Ran(NamedTuple):
    printed: str
    error: str


def ran(snippets: Sequence[str], folder: Path) -> list[Ran]:
    """Return what each snippet printed, and the traceback of one that failed."""
    done = subprocess.run(
        [sys.executable, "-c", _RUN],
        input=json.dumps(list(snippets)),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return [Ran(*answer) for answer in json.loads(done.stdout.splitlines()[-1])]
