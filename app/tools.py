"""Tools of the user's own for the agent, named as `module:attribute`."""

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool

from sharpwave.memory.errors import InputError

Tool = BaseTool | Callable[..., Any]


def load_tools(name: str) -> list[Tool]:
    """Import the tools that `name` says: a LangChain tool or function, or a list of them; modules of the current directory
    are found too.

    Raises:
        InputError: there is no such module or attribute, or it holds no tools.
    """
    module, _, attribute = name.partition(":")
    if not (module and attribute):
        raise InputError(f"--tools {name!r} is not of the form module:attribute, as in my_tools:TOOLS.")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"--tools {name!r} cannot be imported: {error}. Check the name and where the module is."
        ) from error
    tools: Sequence[Any] = found if isinstance(found, list | tuple) else [found]
    wrong = next(
        (tool for tool in tools if isinstance(tool, type) or not (isinstance(tool, BaseTool) or callable(tool))), None
    )
    if wrong is not None or not tools:
        what = "is empty" if wrong is None else f"holds {wrong!r}"
        raise InputError(f"--tools {name!r} {what}; it must be a tool, a function, or a list of them.")
    return list(tools)
