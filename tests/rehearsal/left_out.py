"""Tests that a rehearsal cannot pass, and why: what only a card has, and what takes one core too long."""

SPEED = "it asks how fast a card is"
OVERLAP = "it asks whether copies wait for work that a card does meanwhile; here all work is done at once"
LEFT_OUT = {
    "tests/compare/test_fsc.py::test_the_gpu_compares_256_cubed_in_five_milliseconds": SPEED,
    "tests/compute/ranks/test_ordered_sum.py": "it joins cards by NCCL",
    "tests/compute/test_arena.py::test_a_temporary_array_costs_no_more_than_from_the_pool": SPEED,
    "tests/compute/test_host_block.py::test_copies_are_hidden_behind_work": SPEED,
    "tests/compute/test_host_block.py::test_kernels_see_the_right_turn_while_the_next_is_copied": OVERLAP,
    "tests/mtip/references/test_references.py::"
    "test_on_the_gpu_no_tile_is_overwritten_while_kernels_have_yet_to_read_it": OVERLAP,
}


def why_left_out(nodeid: str) -> str | None:
    """The reason for a test, or None if it is rehearsed."""
    for start, reason in LEFT_OUT.items():
        if nodeid.startswith(start):
            return f"not in a rehearsal: {reason}"
    return None
