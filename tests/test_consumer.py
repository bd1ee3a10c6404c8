"""The wheel, and a project that uses it beside its own `memory` and `prompts` packages."""

import json
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from textwrap import dedent

import pytest
from project import ROOT, copy_project, project_files, pyproject

CONSUMER = {
    "memory/__init__.py": "OWN = 'the consumer has a memory'",
    "prompts/__init__.py": "OWN = 'the consumer has prompts'",
    "main.py": """
        import json
        import sys
        from pathlib import Path

        import memory
        import prompts
        from langchain_core.embeddings import DeterministicFakeEmbedding
        from sharpwave.graphs import Context, build_agent
        from sharpwave.memory import MemoryStore

        store = MemoryStore.open(Path("home"), embeddings=DeterministicFakeEmbedding(size=64))
        agent = build_agent(memory=store).compile()

        def say(text):
            result = agent.invoke({"messages": [{"role": "user", "content": text}]}, context=Context(user_id="ana"))
            return result["messages"][-1].content

        replies = [say("I live in Lisbon."), say("Where do I live?")]
        files = {name: module.__file__ for name, module in sys.modules.items() if name.split(".")[0] == "sharpwave"}
        print(json.dumps({"own": [memory.OWN, prompts.OWN], "replies": replies, "files": files}))
    """,
}


def pip(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the project."""
    folder = tmp_path_factory.mktemp("wheel")
    project = copy_project(folder / "project")
    pip("wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, project)
    return next(folder.glob("sharpwave-*.whl"))


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    shipped = {
        Path("sharpwave", *(file.parts[1:] if file.parts[0] == "app" else file.parts)).as_posix()
        for file in project_files()
        if file.parts[0] in {"app", "benchmarks", "graphs", "memory", "prompts"}
        and (
            file.suffix == ".py"
            or file.match("prompts/*.md")
            or file.name == "py.typed"
            or file.match("memory/extract/*.json")  # weights
            or file.match("memory/learning/*.*")  # word lists, wordings, and the network with what is known of it
        )
    }
    assert held == shipped
    assert "sharpwave/py.typed" in held


def test_the_wheel_carries_licence_readme_and_command(wheel: Path) -> None:
    info = f"sharpwave-{pyproject()['project']['version']}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        assert f"{info}/licenses/LICENSE" in archive.namelist()
        metadata = archive.read(f"{info}/METADATA").decode()
        assert "sharpwave = sharpwave.cli:main" in archive.read(f"{info}/entry_points.txt").decode()
    assert "License-Expression: MIT" in metadata
    headers, _, readme = metadata.partition("\n\n")
    assert "Description-Content-Type: text/markdown" in headers
    assert readme.strip() == (ROOT / "README.md").read_text(encoding="utf-8").strip()


def test_a_project_with_its_own_memory_and_prompts_runs_the_agent(wheel: Path, tmp_path: Path) -> None:
    installed, consumer = tmp_path / "installed", tmp_path / "consumer"
    pip("install", "-q", "--no-deps", "--target", installed, wheel)
    for name, text in CONSUMER.items():
        (consumer / name).parent.mkdir(parents=True, exist_ok=True)
        (consumer / name).write_text(dedent(text), encoding="utf-8")
    # -S keeps the environment's .pth files out, and with them the editable install, which would fill in for a module
    # that the wheel lacks.
    search = [str(installed), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    done = subprocess.run(
        [sys.executable, "-S", "main.py"],
        cwd=consumer,
        env={"PYTHONPATH": ":".join(dict.fromkeys(search)), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["own"] == ["the consumer has a memory", "the consumer has prompts"]
    assert "Lisbon" in result["replies"][1]
    assert [file for file in result["files"].values() if not Path(file).is_relative_to(installed)] == []
