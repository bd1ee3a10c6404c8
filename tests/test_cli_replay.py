"""`sharpwave replay`, through the command line's own entry, and as a process that is told to end."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from commanding import Run, runner
from fakes import HashEmbeddings

from sharpwave.arguments import hours, pause
from sharpwave.commands import replay
from sharpwave.memory.errors import InputError
from sharpwave.memory.store import MemoryStore

TESTS = str(Path(__file__).parent)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    with MemoryStore.open(home, embeddings=HashEmbeddings()) as store:
        for text in ("Lives in Oslo", "Plays the cello", "Has a dog"):
            store.add("ana", text, strength=0.5)
        store.add("ana", "Perhaps owns a boat", confidence=0.1)
    return home


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(home, [replay], monkeypatch, capsys, "replay")


def test_a_dry_run_then_the_run_itself_then_the_status(run: Run) -> None:
    asked = ("run", "--user", "ana", "--strategy", "prioritized", "-n", "20", "--json")
    dry = run(*asked, "--dry-run").json
    assert (dry["dry_run"], dry["replayed"], dry["forgotten"]) == (True, 4, 1)
    assert run("status", "-u", "ana", "--json").json["runs"] == 0
    wet = run(*asked).json
    assert sorted(wet["ids"]["replayed"]) == sorted(dry["ids"]["replayed"])
    assert (wet["strengthened"], wet["merged"], wet["derived"], wet["settled"], wet["forgotten"]) == (4, 0, 0, 0, 1)
    found = run("status", "-u", "ana", "--json").json
    assert (found["runs"], found["buffer"], found["mean_replayed"], found["unfinished"]) == (1, 4, 1.0, [])
    assert found["mean_strength"] > 0.5 and found["last_run"] is not None
    (past,) = found["history"]
    assert past["strategy"] == "prioritized" and past["ids"] == wet["ids"] and past["run"] == wet["run"]
    assert run(*asked[:-1], "--run", wet["run"]).out.count(wet["run"]) == 1
    assert run("status", "-u", "ana", "--json").json["runs"] == 1


def test_tables_for_people(run: Run) -> None:
    shown = run("run", "-u", "ana", "--dry-run").out
    assert "Perhaps owns a boat: would be forgotten" in shown and "prioritized" in shown
    run("run", "-u", "ana", "-s", "recent=2,oldest=1", "-n", "3")
    told = run("status", "-u", "ana").out
    assert "recent 2, oldest 1" in told and "mean strength" in told
    assert "never" in run("status", "-u", "ben").out


def test_a_cue_asks_for_what_it_is_about(run: Run, home: Path) -> None:
    report = run("run", "-u", "ana", "--cue", "the cello", "-n", "1", "--json").json
    with MemoryStore.open(home, embeddings=HashEmbeddings()) as store:
        assert [store.get("ana", one).text for one in report["ids"]["replayed"]] == ["Plays the cello"]
    assert report["strategy"] == "contextual"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "-u", "ana", "--strategy", "best"), "no strategy 'best'"),
        (("run", "-u", "ana", "-s", "recent=x"), "is no number"),
        (("run", "-u", "ana", "--rate", "2"), "rate=2"),
        (("run", "-u", "ana", "-n", "-3"), "n=-3"),
        (("run",), "Whose memory?"),
        (("schedule",), "When is there to be a replay?"),
        (("schedule", "--every", "soon"), "no length of time"),
        (("schedule", "--cron", "0 0 31 4 *"), "never comes"),
        (("schedule", "--every", "10s", "--off-peak", "25-3"), "no hours"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(run: Run, words: tuple[str, ...], message: str) -> None:
    ended = run(*words)
    assert ended.code == 2 and message in ended.err and "Traceback" not in ended.err and ended.out == ""


def test_lengths_of_time_and_hours() -> None:
    assert [pause(text).total_seconds() for text in ("10s", "10m", "2h", "1 d")] == [10, 600, 7200, 86400]  # type: ignore[union-attr]
    assert pause(None) is None and hours(None) is None and hours("22-6") == (22, 6)
    for text in ("0s", "-1m", "1w", ""):
        with pytest.raises(InputError, match="no length of time"):
            pause(text)


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_plot_of_the_runs_so_far(run: Run, tmp_path: Path, kind: str) -> None:
    for number in ("1", "2"):
        run("run", "-u", "ana", "-n", number)
    picture = tmp_path / f"replay.{kind}"
    drawn = run("plot", "-u", "ana", "--out", str(picture), "--json").json
    assert drawn["runs"] == 2 and picture.read_bytes()[:5] == (b"\x89PNG\r" if kind == "png" else b"<?xml")
    told = run("status", "-u", "ana").out
    assert "Evidence" in told and "100 %" in told and "memories" in told


def test_a_plot_that_cannot_be_drawn_says_why(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = str(tmp_path / "replay.png")
    assert "no replay to draw" in run("plot", "-u", "ana", "--out", out).err
    run("run", "-u", "ana")
    assert ".png or .svg" in run("plot", "-u", "ana", "--out", str(tmp_path / "replay.gif")).err
    assert "cannot be written" in run("plot", "-u", "ana", "--out", str(tmp_path / "no" / "replay.png")).err
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ended = run("plot", "-u", "ana", "--out", out)
    assert ended.code == 2 and "sharpwave[plots]" in ended.err and not Path(out).exists()


SERVICE = """
    import sys
    sys.path.insert(0, {tests!r})
    from fakes import HashEmbeddings
    import sharpwave.models
    sharpwave.models.embeddings = lambda settings: HashEmbeddings()
    sys.argv = ["sharpwave", "--home", {home!r}, "replay", "schedule", "--every", "1s", "--json"]
    from sharpwave.cli import main
    main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="processes are told to end by a signal")
def test_the_service_picks_up_what_is_new_and_ends_when_it_is_told_to(home: Path) -> None:
    script = textwrap.dedent(SERVICE).format(tests=TESTS, home=str(home))
    service = subprocess.Popen([sys.executable, "-c", script], env=os.environ.copy(), stdout=subprocess.PIPE, text=True)
    try:
        assert service.stdout is not None
        first = json.loads(service.stdout.readline())
        assert (first["user"], first["why"], first["replayed"]) == ("ana", "periodic", 4)
        with MemoryStore.open(home, embeddings=HashEmbeddings()) as store:
            store.add("ben", "Lives in Rome")
        second = json.loads(service.stdout.readline())
        assert (second["user"], second["replayed"]) == ("ben", 1)
        service.send_signal(signal.SIGTERM)
        began = time.monotonic()
        assert service.wait(20) == 0 and time.monotonic() - began < 15
    finally:
        service.kill()
        service.communicate()
