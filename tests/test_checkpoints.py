"""The chat's checkpointer: what is kept, what is pruned, and what is said when the file cannot be used."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated, TypedDict

import pytest
from fakes import being_made
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages

from sharpwave.checkpoints import FILE, open_checkpointer, prune
from sharpwave.graphs import thread_config
from sharpwave.memory.errors import StoreError


class Talk(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def say(saver: SqliteSaver, user: str, thread: str, text: str) -> list[str]:
    graph = StateGraph(Talk)
    graph.add_node("echo", lambda state: {"messages": [AIMessage(f"heard {state['messages'][-1].text}")]})
    graph.add_edge(START, "echo")
    agent = graph.compile(checkpointer=saver)
    result = agent.invoke({"messages": [HumanMessage(text)]}, thread_config(user, thread))
    return [message.text for message in result["messages"]]


def rows(home: Path, table: str) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(home / FILE)) as connection:
        return connection.execute(f"SELECT thread_id, checkpoint_id FROM {table} ORDER BY 1, 2").fetchall()


def test_a_new_file_that_another_process_is_making_is_waited_for(tmp_path: Path) -> None:
    with being_made(tmp_path / FILE), open_checkpointer(tmp_path) as saver:
        assert say(saver, "ana", "t1", "one") == ["one", "heard one"]


def test_a_conversation_goes_on_after_reopening(tmp_path: Path) -> None:
    with open_checkpointer(tmp_path) as saver:
        say(saver, "ana", "t1", "one")
    with open_checkpointer(tmp_path) as saver:
        assert say(saver, "ana", "t1", "two") == ["one", "heard one", "two", "heard two"]


def test_two_users_with_the_same_thread_name_share_nothing(tmp_path: Path) -> None:
    with open_checkpointer(tmp_path) as saver:
        say(saver, "ana", "t1", "my secret")
        assert say(saver, "bob", "t1", "hello") == ["hello", "heard hello"]


def test_the_file_is_private(tmp_path: Path) -> None:
    with open_checkpointer(tmp_path) as saver:
        say(saver, "ana", "t1", "one")
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert f"{FILE}-wal" in modes
    assert set(modes.values()) == {0o600}


def test_pruning_keeps_the_newest_states_of_each_thread_and_their_writes(tmp_path: Path) -> None:
    with open_checkpointer(tmp_path) as saver:
        for thread in ("t1", "t2"):
            for text in ("one", "two", "three"):
                say(saver, "ana", thread, text)
        before = rows(tmp_path, "checkpoints")
        gone = prune(saver, 2)
        kept = rows(tmp_path, "checkpoints")
        threads = {thread for thread, _ in before}
        assert len(threads) == 2
        for thread in threads:
            assert [row for row in kept if row[0] == thread] == [row for row in before if row[0] == thread][-2:]
        assert gone == len(before) - 4
        assert rows(tmp_path, "writes")
        assert set(rows(tmp_path, "writes")) <= set(kept)
        assert say(saver, "ana", "t1", "four")[-4:] == ["three", "heard three", "four", "heard four"]


def test_pruning_one_thread_leaves_the_others(tmp_path: Path) -> None:
    with open_checkpointer(tmp_path) as saver:
        say(saver, "ana", "t1", "one")
        say(saver, "ana", "t2", "one")
        other = thread_config("ana", "t2")["configurable"]["thread_id"]
        before = [row for row in rows(tmp_path, "checkpoints") if row[0] == other]
        prune(saver, 1, thread_config("ana", "t1")["configurable"]["thread_id"])
        after = rows(tmp_path, "checkpoints")
        assert [row for row in after if row[0] == other] == before
        assert len(after) == len(before) + 1


def test_a_damaged_file_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"this is no database, whatever its name may say" * 100)
    with (
        pytest.raises(StoreError, match=r"checkpoints\.sqlite3 cannot be read or written"),
        open_checkpointer(tmp_path),
    ):
        pass


def test_a_home_that_is_a_file_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("not a folder")
    with pytest.raises(StoreError, match="Choose another folder"), open_checkpointer(tmp_path / "home"):
        pass
