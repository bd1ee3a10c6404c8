"""Settings: where they come from, which win, and what is said about those that do not fit."""

import re
from pathlib import Path

import pytest

from sharpwave.memory.errors import ConfigError
from sharpwave.settings import Settings

EXAMPLE = Path(__file__).resolve().parents[1] / ".env.example"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("SHARPWAVE_HOME", "LOCAL_GGUF"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_without_settings_it_is_keyless_and_local() -> None:
    settings = Settings.load()
    assert settings.mode == "keyless"
    assert (settings.embeddings, settings.timezone, settings.recall_budget) == ("local", "UTC", 300)
    assert settings.home.name == "sharpwave"


def test_what_is_passed_wins_over_the_environment_which_wins_over_the_file(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (empty_folder / ".env").write_text("SHARPWAVE_USER=file\nSHARPWAVE_MODEL=file\nSHARPWAVE_TIMEZONE=Asia/Tokyo\n")
    monkeypatch.setenv("SHARPWAVE_USER", "environment")
    monkeypatch.setenv("SHARPWAVE_MODEL", "environment")
    settings = Settings.load(user="passed", model=None)
    assert (settings.user, settings.model, settings.timezone) == ("passed", "environment", "Asia/Tokyo")


def test_a_file_of_the_parent_folder_is_not_read(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (empty_folder / ".env").write_text("SHARPWAVE_USER=parent\n")
    (empty_folder / "below").mkdir()
    monkeypatch.chdir(empty_folder / "below")
    assert Settings.load().user is None


def test_blank_variables_count_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "SHARPWAVE_MODEL", "SHARPWAVE_RECALL_BUDGET"):
        monkeypatch.setenv(name, "")
    assert Settings.load() == Settings.load(recall_budget=300)
    assert Settings.load().mode == "keyless"


@pytest.mark.parametrize(
    ("variables", "mode"),
    [
        ({"OPENAI_API_KEY": "k"}, "openai"),
        ({"OPENAI_BASE_URL": "http://localhost:1/v1"}, "openai"),
        ({"SHARPWAVE_MODEL": "gpt-4.1-mini"}, "openai"),
        ({"LOCAL_GGUF": "~/model.gguf", "OPENAI_API_KEY": "k"}, "local"),
        ({"SHARPWAVE_LOCAL_GGUF": "~/model.gguf"}, "local"),
        ({"SHARPWAVE_MODEL": "none", "OPENAI_API_KEY": "k", "LOCAL_GGUF": "~/model.gguf"}, "keyless"),
    ],
)
def test_the_mode_follows_from_what_is_set(
    variables: dict[str, str], mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Settings.load().mode == mode


def test_paths_may_start_at_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARPWAVE_HOME", "~/memories")
    assert Settings.load(local_gguf="~/m.gguf").home == Path.home() / "memories"
    assert Settings.load(local_gguf="~/m.gguf").local_gguf == Path.home() / "m.gguf"


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("SHARPWAVE_RECALL_BUDGET", "many", "integer"),
        ("SHARPWAVE_RECALL_BUDGET", "-1", "greater"),
        ("SHARPWAVE_MODEL_TIMEOUT", "nan", "finite"),
        ("SHARPWAVE_KEEP_CHECKPOINTS", "0", "greater"),
        ("SHARPWAVE_TIMEZONE", "Mars/Olympus", "Europe/Lisbon"),
        ("SHARPWAVE_EMBEDDINGS", "openai:", "text-embedding-3-small"),
        ("SHARPWAVE_EXTRACTOR", "magic", "'rules'"),
        ("SHARPWAVE_POLICY", "llm", "OPENAI_BASE_URL"),
        ("SHARPWAVE_USER", "   ", "blanks"),
        ("OPENAI_BASE_URL", "localhost:11434", "http://"),
    ],
)
def test_a_value_that_does_not_fit_is_told_in_one_line(
    name: str, value: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError) as caught:
        Settings.load()
    message = str(caught.value)
    assert name in message and hint in message
    assert "\n" not in message and "pydantic" not in message


def test_all_that_does_not_fit_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARPWAVE_COLLECTIONS", "0")
    with pytest.raises(ConfigError) as caught:
        Settings.load(recall_budget=-1)
    assert "recall_budget='-1' does not fit." in str(caught.value)
    assert "SHARPWAVE_COLLECTIONS='0' does not fit." in str(caught.value)


def test_a_key_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    settings = Settings.load()
    assert "sk-very-secret" not in repr(settings) + str(settings.model_dump()) + settings.model_dump_json()
    with pytest.raises(ConfigError) as caught:
        Settings.load(openai_api_key=["sk-very-secret"])
    assert "sk-very-secret" not in str(caught.value)


def test_a_file_that_is_not_text_is_told(empty_folder: Path) -> None:
    (empty_folder / ".env").write_bytes("SHARPWAVE_USER=ana\n".encode("utf-16"))
    with pytest.raises(ConfigError, match=r"\.env .*UTF-8"):
        Settings.load()


def test_the_example_names_every_variable_and_its_default(empty_folder: Path) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    variables = re.findall(r"^# ([A-Z_]+)=", text, re.MULTILINE)
    assert sorted(variables) == sorted(Settings.variable(field) for field in Settings.model_fields)
    assert all(line.startswith("#") for line in text.splitlines() if line), "every variable is commented out"
    assert len(re.findall(r"^# .*[.\w]\n# [A-Z_]+=", text, re.MULTILINE)) == len(variables), (
        "each has a line that explains it"
    )
    plain = Settings.load()
    (empty_folder / ".env").write_text(re.sub(r"^# ([A-Z_]+=)", r"\1", text, flags=re.MULTILINE), encoding="utf-8")
    assert Settings.load() == plain
