"""How an episode is told to a model: short, as quoted data, without what tools may have smuggled in."""

from sharpwave.memory.kinds import Episode, Step
from sharpwave.memory.lived import ANSWER, clipped, seems_failed
from sharpwave.memory.trust import looks_like_instruction, pasted
from sharpwave.prompts import quoted

LONGEST_ERROR, LONGEST_CALL, LONGEST_SAID = 120, 100, 300

_WITHHELD = "(left out: it reads like an instruction)"


def brief(episode: Episode, *, steps: int = 6) -> str:
    """Return an episode for a prompt, a few lines: task, outcome, steps, lesson, all of it as quoted data.

    Results of tools are left out but for the errors; what reads like an instruction is left out too.
    """
    lines = [
        f"Task: {quoted(task_of(episode), 200)}",
        f"Outcome: {episode.outcome} ({episode.ended_at:%Y-%m-%d})",
    ]
    acts = [step for step in episode.trajectory if step.action and step.action != ANSWER]
    told = [quoted(done_in(step), 240) for step in acts[:steps]]
    told += [f"{len(acts) - steps} more"] if len(acts) > steps else []
    lines += [f"Steps: {' → '.join(told)}"] if told else []
    learned = episode.lesson or episode.reflection
    return "\n".join([*lines, *([f"Lesson: {quoted(learned, 300)}"] if learned else [])])


def described(episode: Episode) -> str:
    """Return an episode as a model is shown it: quoted data, a line a step."""
    lines = [f"Task: {quoted(task_of(episode), LONGEST_SAID)}", f"Outcome: {episode.outcome}"]
    for at, step in enumerate(episode.trajectory, 1):
        parts = [_said(part) for part in (step.thought, step.action, step.observation) if part]
        lines.append(f"Step {at}{' (failed)' if failing(step) else ''}: {' → '.join(parts)}")
    return "\n".join(lines)


def failing(step: Step) -> bool:
    """Return whether a step failed: it says so, or what was observed does by its first words."""
    return step.failed or seems_failed(step.observation)


def shown(text: str, limit: int, *, foreign: str | None = None) -> str:
    """Return a text on one line, at most `limit` characters of it, or a note where it reads like an instruction.

    `foreign` is the part of it that is not the user's own words; by default all of it.
    """
    return (
        _WITHHELD
        if looks_like_instruction(text if foreign is None else foreign)
        else clipped(" ".join(text.split()), limit)
    )


def error_of(step: Step) -> str:
    """Return the line of a failed step that names the error."""
    lines = [line.strip() for line in step.observation.splitlines() if line.strip()]
    traced = bool(lines) and lines[0].startswith("Traceback")
    return shown((lines[-1] if traced else lines[0]).removeprefix("The tool failed: "), LONGEST_ERROR) if lines else ""


def tool_of(step: Step) -> str:
    """Return the name of what was called in a step."""
    return step.action.partition("(")[0].strip()


def task_of(episode: Episode) -> str:
    """Return what was to be done, for a prompt."""
    return shown(episode.task, LONGEST_SAID, foreign=pasted(episode.task))


def done_in(step: Step) -> str:
    """Return what was done in a step and, where it failed, the error, for a prompt."""
    return failure(step) if failing(step) else call(step)


def _said(text: str) -> str:
    return quoted(shown(text, LONGEST_SAID), LONGEST_SAID)


def call(step: Step) -> str:
    """Return what was done in a step, for a prompt."""
    return shown(step.action, LONGEST_CALL)


def failure(step: Step) -> str:
    """Return what failed in a step, and the error, for a prompt."""
    error = error_of(step)
    return f"{call(step)} failed with “{error}”" if error else f"{call(step)} failed"
