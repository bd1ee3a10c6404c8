"""From settings and a store to the graphs: which model answers, who extracts, who decides, whether the user is asked."""

from collections.abc import Sequence
from pathlib import Path

from langchain_core.embeddings import Embeddings
from langchain_core.language_models.chat_models import BaseChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph

from sharpwave.graphs import (
    Context,
    Reading,
    State,
    build_agent,
    build_reader,
    build_replay,
    build_write,
    write_pending,
)
from sharpwave.graphs.agent import Write
from sharpwave.graphs.background import BackgroundWriter, background_writer
from sharpwave.graphs.replay import ReplayGraph
from sharpwave.graphs.write import Ask
from sharpwave.memory.decide import Policy
from sharpwave.memory.decide.learned import LearnedPolicy, keyless
from sharpwave.memory.decide.llm import LLMPolicy
from sharpwave.memory.decide.rules import RulesPolicy
from sharpwave.memory.decide.shadow import Shadowed
from sharpwave.memory.errors import ConfigError
from sharpwave.memory.extract import Extractor
from sharpwave.memory.extract.llm import LLMExtractor
from sharpwave.memory.extract.rules import rules_for
from sharpwave.memory.learning.checkpoint import load
from sharpwave.memory.store import MemoryStore
from sharpwave.memory.working import default_buffer
from sharpwave.models import chat_model, embeddings
from sharpwave.settings import Settings
from sharpwave.tools import Tool


def agent_graph(
    settings: Settings, store: MemoryStore, *, write: Write | None = None, tools: Sequence[Tool] = ()
) -> StateGraph[State, Context, State, State]:
    """Return the agent that the settings describe, uncompiled; `write` overrides theirs, and `tools` is what it may call.

    Raises what `chat_model` raises, and `ConfigError` for tools without a model.
    """
    model, write = chat_model(settings), write or settings.write
    if tools and model is None:
        raise ConfigError("Tools need a chat model to call them. Set OPENAI_API_KEY or OPENAI_BASE_URL.")
    return build_agent(
        model=_streaming(model),
        memory=store,
        extract=_extractor(settings, model, store.embeddings),
        decide=_watched(settings, store, _policy(settings, model, store.embeddings)),
        write=write,
        confirm=settings.confirm and write != "off",
        buffer=default_buffer(model, settings.context_tokens) if model else None,
        tools=tools,
    )


def write_graph(settings: Settings, store: MemoryStore) -> StateGraph[State, Context, State, State]:
    """Return the writing graph that the settings describe, uncompiled. Raises what `chat_model` raises."""
    extractor, policy = writers(settings, store.embeddings)
    return build_write(
        memory=store, extract=extractor, decide=_watched(settings, store, policy), confirm=settings.confirm
    )


def reader_graph(
    settings: Settings, store: MemoryStore | None = None, root: Path | None = None
) -> StateGraph[Reading, Context, Reading, Reading]:
    """Return the graph that reads documents as the settings describe, uncompiled: those in `root` alone, if it is given.

    Args:
        settings: say which model reads; without one the embedder finds what matters.
        store: books what the model costs.
        root: see `build_reader`.

    Raises what `chat_model` raises.
    """
    model = chat_model(settings)
    return build_reader(
        model=model,
        embeddings=None if model else embeddings(settings),
        memory=store,
        root=root,
        window=settings.context_tokens,
    )


def replay_graph(settings: Settings, store: MemoryStore) -> ReplayGraph:
    """Return the replay graph that the settings describe, uncompiled. Raises what `chat_model` raises."""
    return build_replay(memory=store, model=chat_model(settings))


def write_waiting(settings: Settings, store: MemoryStore, owner: str | None, ask: Ask | None) -> int:
    """Write what waits in the queue, and return how many turns that were. Raises what `chat_model` raises."""
    return write_pending(store, write_graph(settings, store).compile(checkpointer=InMemorySaver()), owner, ask=ask)


def background(settings: Settings, store: MemoryStore) -> BackgroundWriter:
    """Return what writes to the store in the background, as the settings say. Raises what `chat_model` raises."""
    extractor, policy = writers(settings, store.embeddings)
    return background_writer(store, extractor, _watched(settings, store, policy))


def writers(settings: Settings, embeddings: Embeddings) -> tuple[Extractor, Policy]:
    """Return who extracts and who decides, in a store with these embeddings. Raises what `chat_model` and `load` raise."""
    by_rules = settings.extractor == "rules" and settings.policy in ("rules", "learned")
    model = None if by_rules else chat_model(settings)
    return _extractor(settings, model, embeddings), _policy(settings, model, embeddings)


def _streaming(model: BaseChatModel | None) -> BaseChatModel | None:
    """Let answers come word by word also where a graph is invoked; facts are still asked for in one piece."""
    if model is None or "streaming" not in type(model).model_fields:
        return model
    return model.model_copy(update={"streaming": True})


def _extractor(settings: Settings, model: BaseChatModel | None, embeddings: Embeddings) -> Extractor:
    return rules_for(embeddings) if model is None or settings.extractor == "rules" else LLMExtractor(model)


def _policy(settings: Settings, model: BaseChatModel | None, embeddings: Embeddings) -> Policy:
    if settings.policy == "learned":
        return LearnedPolicy(load(embeddings=embeddings))
    if settings.policy == "rules":
        return RulesPolicy()
    if model is None:
        return keyless(embeddings)
    return LLMPolicy(
        model if settings.extractor == "rules" else None
    )  # a model that extracts proposes in the same call


def _watched(settings: Settings, store: MemoryStore, policy: Policy) -> Policy:
    """Put the policy that only watches beside the one that decides, if the settings name one."""
    if settings.shadow is None:
        return policy
    watching = LearnedPolicy(load(embeddings=store.embeddings)) if settings.shadow == "learned" else RulesPolicy()
    return Shadowed(policy, watching, store.note_shadow)
