"""The last rank takes four times as long for an item; prints how many each rank has claimed."""

import time

from orienteer.compute.ranks.world import world

ITEMS, SECONDS, SLOWED = 40, 0.05, 4


def main() -> None:
    comm = world()
    is_slow = comm.share(comm.size).start == comm.size - 1
    ranks = comm.split(0, dynamic=True)
    list(ranks.claimed(range(ranks.size)))
    ranks.sum(0)
    claimed = []
    for item in ranks.claimed(range(ITEMS)):
        claimed.append(item)
        time.sleep(SECONDS * (SLOWED if is_slow else 1))
    of_all = comm.gather(claimed)
    assert sorted(item for each in of_all for item in each) == list(range(ITEMS))
    if comm.is_first:
        print(*(len(each) for each in of_all))


if __name__ == "__main__":
    main()
