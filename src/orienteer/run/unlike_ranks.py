"""Ranks whose states are not the same: different last digits are reported, anything else is a defect.

All ranks of a run have the same state.  Different processors may round differently, and then some last digits
differ, which is no reason to stop.  Whole numbers, names, types and shapes do not depend on rounding: ranks
that differ in them no longer do the same work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from orienteer.run.crew import Crew, Failure
from orienteer.run.state_file import checksum_of

_WHOLE = "biu"
_MOST_NAMED = 4


def compare_states(crew: Crew, arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> str:
    """A sentence about ranks whose state differs from that of the leader, or ""; all ranks call this.

    A difference that rounding cannot explain is raised as a defect on all ranks.
    """
    whole = _whole_digest(arrays, values)
    digests = crew.everyone(whole)
    if len(set(digests)) == 1:
        return ""
    first, *others = crew.everyone(_fingerprints(arrays, values))
    for rank, other in enumerate(others, start=1):
        for name in sorted({*first, *other}):
            if first.get(name, ("",))[0] != other.get(name, ("",))[0]:
                what = f"its state '{name}' is not that of {crew.name(0)}."
                raise Failure("defect", what, "", "", "").error(crew.name(rank))
    unlike = [rank for rank, digest in enumerate(digests) if digest != digests[0]]
    named = ", ".join(crew.name(rank) for rank in unlike[:_MOST_NAMED])
    if len(unlike) > _MOST_NAMED:
        named += f" and {len(unlike) - _MOST_NAMED} more"
    return (
        f"The numbers of {named} differ from those of {crew.name(0)}, as they do if processors round "
        f"differently; the checkpoint holds those of {crew.name(0)}."
    )


def _whole_digest(arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> str:
    return checksum_of(repr(sorted(values.items())).encode(), arrays)


def _fingerprints(
    arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]
) -> dict[str, tuple[str, str]]:
    """For each name, what must be the same on all ranks, and what may differ in its last digits.

    Texts may differ as well: they hold rounded numbers, and what each rank has planned for its own memory.
    """
    found: dict[str, tuple[str, str]] = {}
    for name, array in arrays.items():
        checksum = checksum_of(b"", {"": array})
        is_whole = array.dtype.kind in _WHOLE
        found[name] = (checksum, "") if is_whole else (f"{array.dtype.str} {array.shape}", checksum)
    for name, value in values.items():
        may_differ = isinstance(value, (float, str))
        found[name] = (type(value).__name__, repr(value)) if may_differ else (repr(value), "")
    return found
