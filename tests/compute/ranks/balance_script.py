"""The last rank takes three times as long for an item; prints the seconds of a loop, static and dynamic."""

import time

from orienteer.compute.ranks.world import world

ITEMS, SECONDS, SLOWED = 40, 0.02, 3


def main() -> None:
    comm = world()
    is_slow = comm.share(comm.size).start == comm.size - 1
    told = []
    for dynamic in (False, True):
        ranks = comm.split(0, dynamic=dynamic)
        list(ranks.claimed(range(ranks.size)))
        ranks.sum(0)
        start = time.perf_counter()
        for _ in ranks.claimed(range(ITEMS)):
            time.sleep(SECONDS * (SLOWED if is_slow else 1))
        ranks.sum(0)
        told.append(time.perf_counter() - start)
    if comm.is_first:
        print(*told)


if __name__ == "__main__":
    main()
