"""Makes and closes more meshes than MPI has room for at a time; prints how many items were claimed."""

from orienteer.compute.ranks.mesh import Mesh
from orienteer.compute.ranks.world import world

# MPICH has 2 048 communicators in all.
MESHES, ITEMS = 2100, 3


def main() -> None:
    n_claimed = 0
    for number in range(MESHES):
        mesh = Mesh.of(world(), "2x1")
        if number % 50 == 0:  # windows are slow to open
            n_claimed += int(mesh.poses.sum(len(list(mesh.poses.claimed(range(ITEMS))))))
        mesh.close()
        mesh.close()
    if world().is_first:
        print(n_claimed)


if __name__ == "__main__":
    main()
