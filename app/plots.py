"""Pictures of replay over time, drawn with matplotlib (extra `plots`)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from sharpwave.memory.errors import ConfigError, InputError

FORMATS = (".png", ".svg")
MEGABYTE = 1_000_000


def draw(history: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw strength, size and probe recall over time into a file.

    Args:
        history: runs in any order, as `waking.status` returns them; those without measurements are passed over.
        path: ends with `.png` or `.svg`, which says the format; a file that is there is replaced.

    Raises:
        InputError: another ending, a file that cannot be written, or no run to draw.
        ConfigError: matplotlib is not installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"A plot is written as {' or '.join(FORMATS)}; got {str(path)!r}.")
    runs = sorted((one for one in history if "store" in one), key=lambda one: str(one["at"]))
    if not runs:
        raise InputError("There is no replay to draw yet: `sharpwave replay run` makes one.")
    try:
        from matplotlib import dates
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("Plots need matplotlib, which is not installed: pip install 'sharpwave[plots]'.") from error
    figure = Figure(figsize=(8, 9), layout="constrained")
    panels: Any = figure.subplots(3, 1, sharex=True)
    days = [datetime.fromisoformat(one["at"]) for one in runs]
    for panel, fill in zip(panels, (_strength, _size, _recall), strict=True):
        fill(panel, days, runs)
        panel.grid(alpha=0.3)
    axis, ticks = panels[-1].xaxis, _untyped(dates)
    axis.set_major_locator(ticks.AutoDateLocator())
    axis.set_major_formatter(ticks.ConciseDateFormatter(axis.get_major_locator()))
    try:
        figure.savefig(path)
    except OSError as error:
        raise InputError(f"The plot {path} cannot be written: {error.strerror}.") from error


def _untyped(module: Any) -> Any:
    return module


def _strength(panel: Any, days: Sequence[datetime], runs: Sequence[Mapping[str, Any]]) -> None:
    _line(panel, days, [one["store"]["mean_strength"] for one in runs], "mean strength of the buffer")
    panel.set(title="Strength", ylim=(0, 1.02))
    panel.legend(loc="lower left")


def _size(panel: Any, days: Sequence[datetime], runs: Sequence[Mapping[str, Any]]) -> None:
    _line(panel, days, [one["store"]["memories"] for one in runs], "memories")
    panel.set(title="Store", ylabel="memories")
    panel.set_ylim(bottom=0)
    other = panel.twinx()
    _line(other, days, [one["store"]["bytes"] / MEGABYTE for one in runs], "files", color="C1", linestyle="--")
    other.set_ylabel("MB")
    other.set_ylim(bottom=0)
    panel.legend(handles=[*panel.lines, *other.lines], loc="lower right")


def _recall(panel: Any, days: Sequence[datetime], runs: Sequence[Mapping[str, Any]]) -> None:
    for name, label in (
        ("recall_before", "probes among the first ten, before the run"),
        ("recall_after", "after it"),
        ("evidence", "evidence within 500 tokens, after it"),
    ):
        _line(panel, days, [one["probes"][name] for one in runs], label)
    panel.set(title="Probe recall", ylim=(0, 1.02))
    panel.legend(loc="lower left")


def _line(panel: Any, days: Sequence[datetime], values: Sequence[float | None], label: str, **style: Any) -> None:
    known = [float("nan") if value is None else value for value in values]
    panel.plot(days, known, marker="o", markersize=4, label=label, **style)
