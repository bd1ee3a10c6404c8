"""Which episodes are alike enough to look for a pattern in, and what is known of them already."""

from collections.abc import Sequence

import numpy as np

from sharpwave.memory.kinds import Episode
from sharpwave.memory.practice import has_calls
from sharpwave.memory.records import Memory

FEWEST, MOST = 3, 50
"""Episodes that a pattern is looked for in; of more, the latest."""
SIMILAR = 0.5
"""Cosine from which the tasks of two episodes are of one sort (all-MiniLM-L6-v2)."""
LATEST = 1000
"""Episodes that are compared, the latest."""
GROWTH = 1.5
"""How many times as many episodes there must be for a pattern to be looked for anew."""


def sorts(episodes: Sequence[Episode], vectors: np.ndarray) -> list[list[Episode]]:
    """Return groups of three or more episodes of one agent whose tasks are alike, in the order in which they were lived.

    Args:
        episodes: in the order of their end.
        vectors: of the task of each, unit length.
    """
    groups: list[list[int]] = []
    for place, episode in enumerate(episodes):
        if not has_calls(episode):
            continue
        firsts = [group[0] for group in groups]
        near = vectors[firsts] @ vectors[place] if firsts else np.empty(0)
        for group in np.argsort(-near, kind="stable"):
            if near[group] >= SIMILAR and episodes[groups[group][0]].agent == episode.agent:
                groups[group].append(place)
                break
        else:
            groups.append([place])
    return [[episodes[place] for place in group[-MOST:]] for group in groups if len(group) >= FEWEST]


def known_of(episodes: Sequence[Episode], insights: Sequence[Memory]) -> Memory | None:
    """Return the insight, of whatever status, that was gained from the same episodes or from part of them, the latest."""
    ids = {episode.id for episode in episodes}
    found = [one for one in insights if one.derived_from and ids & set(one.derived_from)]
    return max(found, key=lambda one: (len(ids & set(one.derived_from)), one.recorded_at), default=None)


def grown(episodes: Sequence[Episode], known: Memory | None) -> bool:
    """Whether there is something to learn that `known` does not say: no pattern yet, or half as many episodes again."""
    if known is None:
        return True
    new = {episode.id for episode in episodes} - set(known.derived_from)
    return len(new) >= max(1, (GROWTH - 1) * len(known.derived_from))
