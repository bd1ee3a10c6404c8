"""Start `langgraph dev` once, in an environment of its own, and take one turn through it. Minutes; needs an index.

Usage: python tests/langgraph_dev.py
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from project import copy_project, locked

SERVER = "langgraph-cli[inmem]==0.4.40"
LOOSENED = ("protobuf", "grpcio")  # the server wants older ones than the lock holds
START_SECONDS = 240


def install(folder: Path, project: Path) -> Path:
    """Make an environment that holds the project, its locked dependencies and the server; returns its bin folder."""
    pins = [line.split(" --hash")[0].strip() for line in locked()]
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(pin for pin in pins if pin.split("==")[0] not in LOOSENED), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    pip = [folder / "venv/bin/python", "-m", "pip", "install", "-q", "-c", constraints]
    subprocess.run([*pip, SERVER, f"{project}[embedded]"], check=True)
    return folder / "venv/bin"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(bin_folder: Path, project: Path, home: Path) -> Iterator[str]:
    """Run the server with nothing of this shell's environment; yields its address, and stops it at the end."""
    port = free_port()
    environment = {
        "PATH": f"{bin_folder}{os.pathsep}{os.defpath}",
        "HOME": str(home),
        "SHARPWAVE_HOME": str(home / "sharpwave"),
        "LANGSMITH_TRACING": "false",
        "LANGGRAPH_NO_VERSION_CHECK": "true",
    }
    command = [bin_folder / "langgraph", "dev", "--no-browser", "--no-reload", "--port", str(port)]
    log = home / "langgraph.log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            command, cwd=project, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        wait_until_up(f"http://127.0.0.1:{port}", server)
        yield f"http://127.0.0.1:{port}"
    except BaseException:
        print(log.read_text(encoding="utf-8", errors="replace")[-4000:], file=sys.stderr)
        raise
    finally:
        stop(server)


def wait_until_up(address: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise SystemExit(f"langgraph dev ended with exit code {server.returncode} before it was up.")
        try:
            with urllib.request.urlopen(f"{address}/ok", timeout=5):
                return
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            time.sleep(1)
    raise SystemExit(f"langgraph dev was not up after {START_SECONDS} s.")


def stop(server: subprocess.Popen[bytes]) -> None:
    """End the server with its children, which share its process group."""
    for sign in (signal.SIGINT, signal.SIGKILL):
        if server.poll() is None:
            os.killpg(server.pid, sign)
            try:
                server.wait(timeout=20)
            except subprocess.TimeoutExpired:
                continue


def turn(address: str, text: str) -> str:
    """Say something as the user "ana"; returns the reply's text."""
    body = {
        "assistant_id": "agent",
        "input": {"messages": [{"role": "user", "content": text}]},
        "context": {"user_id": "ana"},
    }
    request = urllib.request.Request(
        f"{address}/runs/wait", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        state: dict[str, Any] = json.load(answer)
    last = (state.get("messages") or [{}])[-1]
    if last.get("type") != "ai" or not str(last.get("content", "")).strip():
        raise SystemExit(f"The turn has no reply: {json.dumps(state)[:2000]}")
    return str(last["content"])


def main() -> None:
    """Install, serve, talk, stop."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project = copy_project(folder / "project")
        print(f"Installing {SERVER}; this takes a few minutes.", flush=True)
        bin_folder = install(folder, project)
        home = folder / "home"
        home.mkdir()
        started = time.monotonic()
        with serving(bin_folder, project, home) as address:
            print(f"langgraph dev is up after {time.monotonic() - started:.0f} s.", flush=True)
            print("langgraph dev replied:", turn(address, "I live in Lisbon."), flush=True)


if __name__ == "__main__":
    main()
