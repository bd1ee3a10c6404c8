"""The project's own files, as a clone would have them."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def project_files() -> list[Path]:
    """Paths relative to ROOT of all files that are tracked, or would be if added now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    names = sorted(set(listed.stdout.decode().split("\0")) - {""})
    return [Path(name) for name in names if (ROOT / name).is_file()]


def copy_project(to: Path) -> Path:
    """Copy those files, so that a build leaves nothing in the working tree; returns `to`."""
    for file in project_files():
        (to / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, to / file)
    return to


def pyproject() -> dict[str, Any]:
    """The parsed pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def locked() -> list[str]:
    """The lock's requirements, one string each: pin, marker and hashes."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]
