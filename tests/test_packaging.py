"""The package as it is declared, locked, laid out and imported."""

import ast
import importlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from project import ROOT, locked, project_files, pyproject

FOLDERS = {"app": "sharpwave"} | {name: f"sharpwave.{name}" for name in ("benchmarks", "graphs", "memory", "prompts")}
MAY_IMPORT = {
    "prompts": {"prompts"},
    "memory": {"memory", "prompts"},
    "graphs": {"graphs", "memory", "prompts"},
}
HEAVY = {
    "chromadb",
    "langchain_chroma",
    "langchain_openai",
    "onnx",
    "onnxruntime",
    "openai",
    "tokenizers",
    "torch",
    "xllamacpp",
}


def sources() -> dict[str, Path]:
    """Every module of the package by its import name."""
    found = {}
    for file in project_files():
        if file.suffix == ".py" and file.parts[0] in FOLDERS:
            inner = file.with_suffix("").parts[1:]
            parts = [FOLDERS[file.parts[0]], *(part for part in inner if part != "__init__")]
            found[".".join(parts)] = file
    return found


def modules() -> list[str]:
    return sorted(name for name in sources() if not name.endswith("__main__"))


def test_declared_packages_are_those_on_disk() -> None:
    on_disk = {name for name, file in sources().items() if file.name == "__init__.py"}
    assert set(pyproject()["tool"]["setuptools"]["packages"]) == on_disk


def test_every_folder_with_modules_is_a_package() -> None:
    files = sources().values()
    packages = {file.parent for file in files if file.name == "__init__.py"}
    assert [str(file) for file in files if file.parent not in packages] == []


def test_declared_version_is_the_installed_one() -> None:
    assert pyproject()["project"]["version"] == importlib.metadata.version("sharpwave"), (
        "install again: pip install -e ."
    )


def test_no_file_is_imported_under_two_names() -> None:
    for name in modules():
        importlib.import_module(name)
    names: dict[Path, set[str]] = defaultdict(set)
    for name, module in list(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or os.devnull).resolve()
        if file.is_relative_to(ROOT) and not file.is_relative_to(Path(sys.prefix).resolve()):
            names[file.relative_to(ROOT)].add(name)
    own = {file for file in names if file.parts[0] in FOLDERS}
    assert len(own) >= len(modules())
    assert {file: twice for file, twice in names.items() if len(twice) > 1} == {}


def imports(file: Path) -> set[str]:
    """Every module that a file names in an import, wherever in the file; `from a import b` gives both a and a.b."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno} imports relatively"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_imports_point_one_way(folder: str) -> None:
    allowed = tuple(f"sharpwave.{name}." for name in MAY_IMPORT[folder])
    wrong = {
        (str(file), name)
        for file in sources().values()
        if file.parts[0] == folder
        for name in imports(file)
        if name.split(".")[0] == "sharpwave" and not f"{name}.".startswith(allowed)
    }
    assert wrong == set()


def test_memory_and_prompts_never_import_langgraph() -> None:
    lower = [file for file in sources().values() if file.parts[0] in ("memory", "prompts")]
    assert {(str(file), name) for file in lower for name in imports(file) if name.split(".")[0] == "langgraph"} == set()


def test_only_commands_that_measure_import_the_benchmarks() -> None:
    app = [file for file in sources().values() if file.parts[0] == "app"]
    users = {file.stem for file in app for name in imports(file) if name.startswith("sharpwave.benchmarks")}
    assert all("bench" in stem or stem == "policy" for stem in users), users


def test_every_locked_requirement_is_pinned_and_hashed() -> None:
    assert [
        line[:80] for line in locked() if not re.match(r"[\w.-]+==\S+", line) or " --hash=sha256:" not in line
    ] == []


def test_the_lock_names_no_index() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert re.findall(r"\S*://\S*|^\s*-\S+.*", re.sub(r"\\\n\s*", "", text), re.MULTILINE) == []


def test_the_lock_satisfies_what_is_declared() -> None:
    pins: dict[str, set[str]] = defaultdict(set)
    for line in locked():
        name, version = re.split(r"==|[\s;]", line)[:2]
        pins[canonicalize_name(name)].add(version)
    project = pyproject()["project"]
    extras = project["optional-dependencies"]
    declared = [Requirement(text) for text in project["dependencies"] + extras["embedded"] + extras["dev"]]
    unmet = [str(r) for r in declared if not any(r.specifier.contains(v) for v in pins[canonicalize_name(r.name)])]
    assert unmet == []


def test_no_file_names_a_path_of_one_machine() -> None:
    pattern = re.compile(rb"(?<![\w.$}-])/(?:work|root|home)/[\w.]")
    found = [(str(file), hit) for file in project_files() for hit in pattern.findall((ROOT / file).read_bytes())]
    assert found == []


def test_langgraph_json_names_factories_that_exist() -> None:
    for target in json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))["graphs"].values():
        module, _, name = target.partition(":")
        assert callable(getattr(importlib.import_module(module), name)), target


PROBE = """
import importlib, json, sys, threading, time
reached = []
OUTSIDE = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "subprocess.Popen"}
sys.addaudithook(lambda event, args: reached.append([event, repr(args)]) if event in OUTSIDE else None)
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps({
    "cpu": time.process_time(),
    "modules": sorted({name.partition(".")[0] for name in sys.modules}),
    "reached": reached,
    "threads": [thread.name for thread in threading.enumerate()],
}))
"""


def imported(folder: Path, *names: str) -> dict[str, object]:
    """Import modules in a fresh process whose home and working folder is an empty one; returns what that did."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    environment = {"HOME": str(home), "PATH": os.defpath}
    command = [sys.executable, "-c", PROBE, *names]
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    return {**result, "printed": done.stdout.splitlines()[:-1], "warned": done.stderr, "left": os.listdir(home)}


def test_importing_any_module_has_no_side_effect(tmp_path: Path) -> None:
    did = imported(tmp_path, *modules())
    assert set(did["modules"]) & HEAVY == set()  # type: ignore[call-overload]
    assert (did["reached"], did["left"], did["printed"], did["warned"]) == ([], [], [], "")
    assert did["threads"] == ["MainThread"]


@pytest.mark.parametrize(("option", "home"), [("--help", None), ("--version", "/nonexistent/home")])
def test_help_needs_no_home_and_no_key(option: str, home: str | None, tmp_path: Path) -> None:
    environment = {"PATH": os.defpath, **({"HOME": home} if home else {})}
    command = [sys.executable, "-m", "sharpwave", option]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr, os.listdir(tmp_path)) == (0, "", []) and "harpwave" in done.stdout


def test_importing_the_graphs_is_cheap(tmp_path: Path) -> None:
    """Under 2 s of CPU; on a machine that is slow just now, under 2.5 times what LangGraph alone costs it."""
    own = float(str(imported(tmp_path, "sharpwave.graphs")["cpu"]))
    langgraph = float(str(imported(tmp_path, "langgraph.graph")["cpu"])) if own >= 2 else 0.0
    assert own < max(2.0, 2.5 * langgraph), f"{own:.2f} s of CPU; langgraph.graph alone: {langgraph:.2f} s"
