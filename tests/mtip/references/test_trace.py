"""What a trace tells about windows with several readers."""

from orienteer.mtip.references.trace import Visit, share_of_waiting_in_common, shared_windows


def visit(reader: int, step: int, holder: int, start: float, end: float, copied: bool = True) -> Visit:
    return Visit(reader, step, holder, 0, start, end, copied)


def test_two_readers_in_one_step_are_found_and_in_two_steps_are_not() -> None:
    apart = [visit(0, 0, 0, 0, 1), visit(1, 0, 1, 0, 1), visit(0, 1, 1, 0, 1), visit(1, 1, 0, 0, 1)]
    assert shared_windows(apart) == []
    assert shared_windows([*apart, visit(2, 1, 1, 8, 9)]) == [(1, 1, [0, 2])]


def test_seconds_in_common_are_counted_once_and_only_for_copies() -> None:
    # Reader 0 copies for 4 s, in 3 of which others copy from the same; these have 2 and 2 s, all in common.
    visits = [visit(0, 0, 5, 0, 4), visit(1, 0, 5, 1, 3), visit(2, 0, 5, 2, 4), visit(3, 0, 6, 0, 9)]
    assert abs(share_of_waiting_in_common(visits) - (3 + 2 + 2) / (4 + 2 + 2 + 9)) < 1e-12
    assert share_of_waiting_in_common([visit(0, 0, 5, 0, 4, False)]) == 0.0
