"""The long reader's benchmark: are planted facts found at any depth, at what cost, and does memory stay flat?

    python -m sharpwave.benchmarks.long_reader --json

A made-up chronicle hides ten facts, each of another kind, at ten depths, with thirty sentences about the same matters: those
that the reader was tuned on, or with `--held-out` ten that were written afterwards. Every
question is one run of `sharpwave read` in a process of its own, without a model. Found means that the answer holds the fact;
it may quote three passages. Peak RSS is that of the process, CPU seconds those of all its threads, start included.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sharpwave.benchmarks.haystack import HELD_OUT, NEEDLES, UNANSWERED, Needle, chronicle

SIZES = (10_000, 100_000, 1_000_000)


def measure(sizes: Sequence[int] = SIZES, seed: int = 0, needles: Sequence[Needle] = NEEDLES) -> dict[str, Any]:
    """Read chronicles of these sizes (tokens) and return what was found, and what it took.

    Returns:
        By size: `found` of `questions`, `first` (the fact is in the first passage), `answered_unanswerable`, `missed`, mean
        CPU and wall seconds a question, and the highest peak RSS in MB; beside it how that grows from the first to the last.
    """
    by_size = {}
    for tokens in sizes:
        with tempfile.TemporaryDirectory(prefix="sharpwave-") as folder:
            by_size[tokens] = _measured(Path(folder), tokens, seed, random.Random(seed).sample(needles, len(needles)))
    peaks = [row["peak_rss_mb"] for row in by_size.values()]
    return {"seed": seed, "sizes": by_size, "rss_growth_mb": round(peaks[-1] - peaks[0], 1)}


def _measured(folder: Path, tokens: int, seed: int, needles: Sequence[Needle]) -> dict[str, Any]:
    file = folder / "chronicle.txt"
    with file.open("w", encoding="utf-8") as out:
        out.writelines(f"{paragraph}\n\n" for paragraph in chronicle(tokens, needles, seed))
    runs = [(needle, _read(file, needle.question, folder)) for needle in needles]
    missed = [needle.kind for needle, run in runs if needle.answer not in run["answer"]]
    first = sum(needle.answer in run["passages"][0]["text"] for needle, run in runs if run["passages"])
    blank = [_read(file, question, folder) for question in UNANSWERED]
    return {
        "bytes": file.stat().st_size,
        "pieces": runs[0][1]["pieces"],
        "questions": len(runs),
        "found": len(runs) - len(missed),
        "first": first,
        "missed": missed,
        "answered_unanswerable": sum(run["known"] for run in blank),
        "cpu_seconds": round(sum(run["cpu"] for _, run in runs) / len(runs), 2),
        "seconds": round(sum(run["seconds"] for _, run in runs) / len(runs), 2),
        "peak_rss_mb": max(run["rss_mb"] for _, run in runs),
    }


def _read(file: Path, question: str, home: Path) -> dict[str, Any]:
    """Run the command line, and return what it printed with the CPU seconds and the peak RSS of its process."""
    command = [sys.executable, "-m", "sharpwave", "--home", str(home), "read", str(file), "-q", question, "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | {"SHARPWAVE_MODEL": "none"}, text=True)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"sharpwave read ended with exit code {process.returncode}.")
    found: dict[str, Any] = json.loads(printed)
    kilobyte = 1024 if sys.platform == "darwin" else 1  # ru_maxrss is in bytes there
    return found | {"cpu": used.ru_utime + used.ru_stime, "rss_mb": round(used.ru_maxrss / kilobyte / 1024, 1)}


def main() -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="lengths in tokens")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--held-out", action="store_true", help="hide facts that the reader was not tuned on")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = measure(given.sizes, given.seed, HELD_OUT if given.held_out else NEEDLES)
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for tokens, row in found["sizes"].items():
        print(f"{tokens:>9} tokens  " + "  ".join(f"{name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
