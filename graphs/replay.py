"""Replay: begin → select → rehearse → synthesize → plan → consolidate → resolve → forget → report, for one owner.

Each step that writes does so in one transaction with the note that it is done. A run that was killed is taken up by the
next one that is asked for in the same way, or under the same id; what is done is not done again. A dry run goes through
the same steps in transactions that are taken back.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Protocol, TypedDict, runtime_checkable

from langchain_core.language_models.chat_models import BaseChatModel
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send
from sqlalchemy import Connection

from sharpwave.graphs.nodes import Node, needed
from sharpwave.graphs.replay_run import Asked, Limits, asked_of, merged, summary
from sharpwave.graphs.state import Context, context_of, moment
from sharpwave.memory import batch, forget, metrics, runs, waking
from sharpwave.memory import consolidate as consolidation
from sharpwave.memory.buffer import SIZE
from sharpwave.memory.errors import BudgetExceeded, ModelError
from sharpwave.memory.planning import KINDS
from sharpwave.memory.probing import BUDGET, Probing, compared, counts
from sharpwave.memory.records import new_id
from sharpwave.memory.store import MemoryStore

Result = dict[str, Any]
CONSOLIDATED = tuple(kind for kind in KINDS if kind != "settle")
"""Kinds of parts that are done side by side; what needs a review is settled after them."""


@runtime_checkable
class Consolidator(Protocol):
    """Makes knowledge of what was lived, and settles what waits for a review; see `sharpwave.memory.consolidate`."""

    def plan(self, owner: str, *, kinds: Collection[str] = KINDS) -> list[dict[str, Any]]:
        """Return the parts of the work, as plain data: `kind`, one of `kinds`, and `ids`. Only `why` may hold texts."""
        ...

    def carry_out(self, owner: str, part: Mapping[str, Any], *, run: str | None = None) -> dict[str, Any]:
        """Do one part and return counts and `ids` of what was written; a part that is done already does nothing."""
        ...


class ReplayState(TypedDict, total=False):
    """What a run is asked for, and what it has done so far. All but `report` may be left out."""

    n: int
    strategy: str | dict[str, float]
    rate: float
    cue: str
    dry_run: bool
    run: str
    """Id of a run, to take it up or to ask for its report again."""
    probes: int
    max_llm_calls: int
    max_tokens: int
    max_seconds: float
    replaying: Result
    """`run`, `by`, `asked`, `resumed`, `since`: what this run is."""
    steps: Annotated[dict[str, Result], merged]
    part: Result
    report: Result


ReplayGraph = StateGraph[ReplayState, Context, ReplayState, ReplayState]


def build_replay(
    *,
    memory: MemoryStore,
    model: BaseChatModel | None = None,
    consolidate: Consolidator | None = None,
    buffer: int = SIZE,
    patience: float = 30.0,
) -> ReplayGraph:
    """Return the replay graph, uncompiled; it runs for the `user_id` of its context.

    Input is `n` (records to replay, 10; 0 is a run that does nothing), `strategy` (a name or names with shares), `rate`
    (0.1), `cue`, `dry_run`, `run`, `probes` (questions asked of memory itself, 20; 0 leaves them out), and the budgets
    `max_llm_calls`, `max_tokens`, `max_seconds`, past which it ends with a partial report. Output is `report`; with `stream_mode="custom"` each step tells of itself.

    Args:
        memory: where it is remembered.
        model: finds facts in what was said, words summaries, and rephrases questions; without one, all of that is by rules.
        consolidate: takes the place of `sharpwave.memory.consolidate.Consolidator`. Its parts are done side by side.
        buffer: records of an owner that may be replayed.
        patience: seconds that a run waits in all while turns of the owner that came after it began are written.
    """
    work = consolidate or consolidation.Consolidator(memory, model)
    replay = _Replay(needed(memory), Probing(memory, model), work, buffer, patience)
    graph: ReplayGraph = StateGraph(ReplayState, context_schema=Context)
    for name in ("begin", "select", "rehearse", "synthesize", "plan", "consolidate", "resolve", "forget", "report"):
        graph.add_node(name, replay.node(name))
    graph.add_edge(START, "begin")
    graph.add_conditional_edges("begin", lambda state: END if state.get("report") else "select", ["select", END])
    graph.add_edge("select", "rehearse")
    graph.add_edge("rehearse", "synthesize")
    graph.add_edge("synthesize", "plan")
    graph.add_conditional_edges("plan", _parts, ["consolidate", "resolve"])
    graph.add_edge("consolidate", "resolve")
    graph.add_edge("resolve", "forget")
    graph.add_edge("forget", "report")
    graph.add_edge("report", END)
    return graph


def replay_due(memory: MemoryStore, new: int = 100) -> Callable[[Any, Runtime[Context]], bool]:
    """Return a condition for a graph of your own: whether so many records of the run's user are new since the last replay, or
    an episode failed, or a contradiction was seen.

    `graph.add_conditional_edges("respond", replay_due(memory), {True: "replay", False: END})`
    """

    def due(_state: Any, runtime: Runtime[Context]) -> bool:
        context = context_of(runtime)
        with memory.transaction(context.user_id) as (connection, number):
            came = waking.news(connection, number, moment(context))
        return came.new >= new or came.troubles > 0

    return due


def online_node(memory: MemoryStore) -> Node:
    """Return a node that replays a few records after a turn, by priority and without a model; not after an incognito one."""

    def replay(_state: Any, runtime: Runtime[Context]) -> Result:
        """Replay a few records, at once."""
        context = context_of(runtime)
        if context.remember:
            batch.online(memory, context.user_id, context.now)
        return {}

    return replay


def _parts(state: ReplayState) -> list[Send] | str:
    shared = {name: state[name] for name in ("replaying", "steps")}
    planned = [] if _asked(state).dry_run else state["steps"].get("plan", {}).get("parts", [])
    parts = [{"at": at, "of": part} for at, part in enumerate(planned)]
    return [Send("consolidate", {**shared, "part": part}) for part in parts] or "resolve"


class _Replay:
    """The nodes of one graph."""

    def __init__(
        self,
        store: MemoryStore,
        probing: Probing,
        consolidator: Consolidator,
        size: int,
        patience: float,
    ) -> None:
        self.store, self.probing, self.consolidator = store, probing, consolidator
        self.size, self.patience = size, patience
        self._limits: dict[str, Limits] = {}

    def node(self, name: str) -> Node:
        """Return a step as a node: it lets go of the run where it fails, and is passed over where the run has to end."""
        work: Callable[[ReplayState, Context], Result] = getattr(self, name)

        def run(state: ReplayState, runtime: Runtime[Context]) -> Result:
            context = context_of(runtime)
            try:
                over = None if name in ("begin", "report") else self._ended(state, context)
                update = {"steps": {name: {"over": over}}} if over else work(state, context)
            except BaseException:
                self._let_go(state, context.user_id)
                raise
            told = {"replay": (update.get("replaying") or state.get("replaying") or {}).get("run"), "step": name}
            runtime.stream_writer({**told, **_counts(update.get("steps", {}))})
            return update

        run.__doc__ = work.__doc__
        return run

    def begin(self, state: ReplayState, context: Context) -> Result:
        """Check what is asked for, and begin the run or take it up."""
        asked = asked_of(state)
        if asked.cue:
            asked = asked.model_copy(update={"cue": self.store.masked(context.user_id, asked.cue)})
        by, run, resumed = runs.claimant(), state.get("run") or new_id(), False
        if asked.n == 0:
            return {"replaying": {}, "steps": {}, "report": summary(run, asked, {})}
        since = moment(context)
        if not asked.dry_run:
            with self.store.transaction(context.user_id, writes=True) as (connection, number):
                begun = runs.begin(connection, number, asked.kept(), by, since, state.get("run"))
            run, resumed = begun.run.run, begun.resumed
            asked = asked.model_copy(update=begun.run.asked)
            if begun.run.result is not None:
                return {"replaying": {}, "steps": {}, "report": begun.run.result}
        self._limits[run] = Limits(asked, self.patience)
        is_ = {"run": run, "by": by, "asked": asked.model_dump(), "resumed": resumed, "since": since.isoformat()}
        return {"replaying": is_, "steps": {}, "report": {}}

    def select(self, state: ReplayState, context: Context) -> Result:
        """Take what is new into the buffer and choose what is replayed."""
        asked, now = _asked(state), moment(context)
        cue = self.store.embed_query(asked.cue) if asked.cue else None

        def work(connection: Connection, number: int) -> Result:
            chosen = batch.choose(
                *(connection, number, asked.n, asked.strategy),
                now=now,
                seed=state["replaying"]["run"],
                cue=cue,
                size=self.size,
            )
            done: Result = {"chosen": [list(one) for one in chosen]}
            if asked.dry_run:  # the buffer is taken back with this transaction, so what follows from it is told now
                done["would"] = batch.rehearse(connection, number, chosen, now, asked.rate)
            return done

        return self._once(state, context, "select", work)

    def rehearse(self, state: ReplayState, context: Context) -> Result:
        """Strengthen what was chosen, and renew its forgetting curves."""
        asked, picked = _asked(state), state["steps"].get("select", {})
        chosen = [batch.Chosen(*one) for one in picked.get("chosen", [])]

        def work(connection: Connection, number: int) -> Result:
            if asked.dry_run:
                return {"replayed": picked["would"]}
            return {"replayed": batch.rehearse(connection, number, chosen, moment(context), asked.rate)}

        return self._once(state, context, "rehearse", work)

    def synthesize(self, state: ReplayState, context: Context) -> Result:
        """Ask memory questions whose answer is known, and repair what they do not find."""
        asked, run, now = _asked(state), state["replaying"]["run"], moment(context)
        first = [one["id"] for one in state["steps"].get("rehearse", {}).get("replayed", [])]

        def work() -> Result:
            synthesize, dry_run = self.probing.synthesize, asked.dry_run
            return synthesize(context.user_id, first, n=asked.probes, seed=run, now=now, run=run, dry_run=dry_run)

        return self._asking(state, context, "synthesize", work)

    def plan(self, state: ReplayState, context: Context) -> Result:
        """Find what is to be consolidated."""
        return self._asking(state, context, "plan", lambda: {"parts": self._planned(state, context, CONSOLIDATED)})

    def consolidate(self, state: ReplayState, context: Context) -> Result:
        """Do one part of the plan."""
        part, run = state["part"]["of"], state["replaying"]["run"]
        carry_out, name = self.consolidator.carry_out, f"part {state['part']['at']}"
        return self._asking(state, context, name, lambda: carry_out(context.user_id, part, run=run))

    def resolve(self, state: ReplayState, context: Context) -> Result:
        """Settle what needs a review and is clear by rule."""
        owner, run = context.user_id, state["replaying"]["run"]

        def work() -> Result:
            parts = self._planned(state, context, ("settle",))
            if _asked(state).dry_run:
                return {"parts": parts}
            done = [self.consolidator.carry_out(owner, part, run=run) for part in parts]
            return {"settled": sum(one.get("settled", 0) for one in done), "ids": [i for p in parts for i in p["ids"]]}

        return self._asking(state, context, "resolve", work)

    def _planned(self, state: ReplayState, context: Context, kinds: Collection[str]) -> list[Result]:
        hidden = set() if _asked(state).dry_run else {"why"}  # what is noted must not outlive the memory
        parts = self.consolidator.plan(context.user_id, kinds=kinds)
        return [{name: value for name, value in part.items() if name not in hidden} for part in parts]

    def forget(self, state: ReplayState, context: Context) -> Result:
        """Let go of what the rules of forgetting let go of."""
        owner, dry_run = context.user_id, _asked(state).dry_run
        found = forget.forget(self.store, owner, now=moment(context), dry_run=True)
        doomed = () if found.stopped else found.doomed
        hidden = set() if dry_run else {"text"}  # what is noted must not outlive the memory

        def work(connection: Connection, number: int) -> Result:
            forget.let_go(connection, number, owner, doomed, self.store.vector)
            return {"forgotten": [one.model_dump(exclude=hidden) for one in doomed], "stopped": found.stopped}

        return self._once(state, context, "forget", work)

    def report(self, state: ReplayState, context: Context) -> Result:
        """End the run and say what came of it."""
        is_, asked = state["replaying"], _asked(state)
        limits = self._limits.pop(is_["run"], None)
        more = {"resumed": is_["resumed"]}
        if asked.dry_run:
            return {"report": summary(is_["run"], asked, state["steps"]) | more}
        more |= self._effect(state, context)
        with self.store.transaction(context.user_id, writes=True) as (connection, number):
            runs.step(connection, number, is_["run"], is_["by"], "report")
            run = runs.find(connection, number, is_["run"])
            assert run is not None
            steps = {**state["steps"], **runs.steps(connection, number, run.run)}
            made = summary(run.run, asked, steps) | more
            made["seconds"] = round(limits.seconds, 3) if limits else None
            runs.finish(connection, number, run, made, moment(context))
            ended = runs.find(connection, number, run.run)
        return {"report": ended.result if ended else made}

    def _effect(self, state: ReplayState, context: Context) -> Result:
        """Ask the same questions again, and measure what the memory has become."""
        owner, probed = context.user_id, state["steps"].get("synthesize", {})
        after = counts(self.probing.ask(owner, only=probed.get("asked", []), budget=BUDGET, now=moment(context)))
        return {"probes": compared(probed, after), "store": metrics.take(self.store, owner)}

    def _asking(self, state: ReplayState, context: Context, name: str, ask: Callable[[], Result]) -> Result:
        """Do a step that may ask a model, and note what came of it; one that fails is told of in the report."""
        is_, owner = state["replaying"], context.user_id
        if not _asked(state).dry_run:
            with self.store.transaction(owner, writes=True) as (connection, number):
                known = runs.step(connection, number, is_["run"], is_["by"], name)
            if known is not None:
                return {"steps": {name: known}}
        try:
            with self._limits_of(state).metering(self.store, owner) as meter:
                done = ask()
        except (ModelError, BudgetExceeded) as error:
            kind = "over" if isinstance(error, BudgetExceeded) else "failed"
            return {"steps": {name: {kind: str(error)}}}
        return self._once(state, context, name, lambda _c, _n: {**done, "usage": meter.usage.model_dump()})

    def _once(
        self, state: ReplayState, context: Context, name: str, work: Callable[[Connection, int], Result]
    ) -> Result:
        """Do a step in one transaction with the note that it is done, unless it is; that of a dry run is taken back."""
        is_, dry_run = state["replaying"], _asked(state).dry_run
        with self._transaction(context.user_id, dry_run) as (connection, number):
            known = None if dry_run else runs.step(connection, number, is_["run"], is_["by"], name)
            done = work(connection, number) if known is None else known
            if known is None and not dry_run:
                runs.note(connection, number, is_["run"], name, done)
        return {"steps": {name: done}}

    @contextmanager
    def _transaction(self, owner: str, taken_back: bool) -> Iterator[tuple[Connection, int]]:
        try:
            with self.store.transaction(owner, writes=True) as opened:
                yield opened
                if taken_back:
                    raise _TakenBack
        except _TakenBack:
            return

    def _ended(self, state: ReplayState, context: Context) -> str | None:
        """Wait while the owner's new turns are written, and return why the run has to end, if it has to."""
        limits = self._limits_of(state)

        def busy() -> bool:
            with self.store.transaction(context.user_id) as (connection, number):
                run = runs.find(connection, number, state["replaying"]["run"])
                return run is not None and runs.new_turns(connection, number, run.begun_at)

        if not limits.asked.dry_run:
            limits.wait_while(busy)
        return limits.over

    def _limits_of(self, state: ReplayState) -> Limits:
        return self._limits.setdefault(state["replaying"]["run"], Limits(_asked(state), self.patience))

    def _let_go(self, state: ReplayState, owner: str) -> None:
        is_ = state.get("replaying")
        if is_:
            self._limits.pop(is_["run"], None)
            if not _asked(state).dry_run:
                with self.store.transaction(owner, writes=True) as (connection, number):
                    runs.release(connection, number, is_["run"], is_["by"])


class _TakenBack(Exception):
    """Ends a transaction of a dry run."""


def _asked(state: ReplayState) -> Asked:
    return Asked.model_validate(state["replaying"]["asked"])


def _counts(steps: dict[str, Result]) -> dict[str, Any]:
    """Return how much each step has found or done, for those who watch."""
    sizes = {name: len(value) for step in steps.values() for name, value in step.items() if isinstance(value, list)}
    return sizes | {name: value for step in steps.values() for name, value in step.items() if isinstance(value, int)}
