"""Break twenty important lines, one at a time, and see that a test notices each.

    python tools/mutations.py             all of them, some minutes
    python tools/mutations.py lock mask   those whose meaning holds one of the words
    python tools/mutations.py --keep      all, and what came of it into bench/results

Each line is broken in a copy of the sources in a temporary folder; the checkout is only read.  The tests that
are named beside it must fail then, and pass before anything is broken.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
# What tests need of a checkout.
COPIED = ("src", "tests", "tools", "bench", "docs", "examples", "README.md", "pyproject.toml", "Makefile")
# Compiled by Numba from the sources beside them.
COMPILED = ("*.nbi", "*.nbc")
# Exit status of pytest when tests failed; others say that they could not be run at all.  One below zero is a
# signal, which nobody overlooks: compiled loops trust that places lie inside of arrays.
TESTS_FAILED = 1


class Mutation(NamedTuple):
    """A line that must not change unnoticed.

    meaning : what the line stands for, in a few words.
    file : of the source, from the root; original : text that it holds once; broken : what it becomes.
    tests : files, or tests in them, that must fail then, from the root.
    """

    meaning: str
    file: str
    original: str
    broken: str
    tests: tuple[str, ...]


MUTATIONS = [
    Mutation(
        "sign: the Ewald sphere bends against the beam",
        "src/orienteer/detector/scattering_geometry.py",
        "xp.where(forward, -sideways /",
        "xp.where(forward, sideways /",
        ("tests/detector/test_scattering_geometry.py",),
    ),
    Mutation(
        "mask: true is good in a boolean mask of CXI",
        "src/orienteer/source/cxi_masks.py",
        "return mask_from_good(mask)",
        "return mask_from_good(~mask)",
        ("tests/source/test_cxi_masks.py",),
    ),
    Mutation(
        "mask: the beam stop is never used",
        "src/orienteer/detector/masks.py",
        "radius_m < never_within_m * (1 - slack), PixelUse.NEVER, 0)",
        "radius_m < never_within_m * (1 - slack), PixelUse.MERGE_ONLY, 0)",
        ("tests/detector/test_masks.py",),
    ),
    Mutation(
        "convention: a quaternion turns the particle, and right-handed",
        "src/orienteer/orientation/quaternion.py",
        "2 * (x * y - w * z), 2 * (x * z + w * y)],",
        "2 * (x * y + w * z), 2 * (x * z - w * y)],",
        ("tests/orientation/test_quaternion.py",),
    ),
    Mutation(
        "convention: a pose samples the model at its transpose",
        "src/orienteer/reconstruction/workspace.py",
        "np.swapaxes(to_matrix(grid.quaternions), 1, 2)",
        "to_matrix(grid.quaternions)",
        ("tests/reconstruction/test_workspace.py",),
    ),
    Mutation(
        "convention: the centre of a volume is voxel n // 2",
        "src/orienteer/slicing/_trilinear_numba.py",
        "np.int32(bx) + n // 2, np.int32(by)",
        "np.int32(bx) + (n - 1) // 2, np.int32(by)",
        ("tests/slicing/test_trilinear.py",),
    ),
    Mutation(
        "sign: a brighter background takes from the likelihood",
        "src/orienteer/likelihood/poisson.py",
        "- phi * signal - background",
        "- phi * signal + background",
        ("tests/likelihood/test_poisson.py",),
    ),
    Mutation(
        "normalisation: poses weigh by their share of all rotations",
        "src/orienteer/posterior/_evidence_numba.py",
        "(scores[k, d] - reference[d]) + prior",
        "(scores[k, d] - reference[d]) - prior",
        ("tests/posterior/test_scores.py", "tests/posterior/test_tempering.py"),
    ),
    Mutation(
        "independence: a half is oriented by the model of the other",
        "src/orienteer/reconstruction/emc.py",
        "self.models[self.n_halves - 1 - half]",
        "self.models[half]",
        ("tests/reconstruction/test_emc.py::test_each_half_is_oriented_by_the_model_of_the_other",),
    ),
    Mutation(
        "independence: halves of a validation are not those of a run",
        "src/orienteer/validate/half_sets.py",
        "_SALT_OF_HALVES, _SALT_OF_SENTINELS = 2, 3",
        "_SALT_OF_HALVES, _SALT_OF_SENTINELS = 0, 3",
        ("tests/validate/test_half_sets.py",),
    ),
    Mutation(
        "normalisation: the half of a transform that is not stored counts",
        "src/orienteer/compare/_fsc_numba.py",
        "weight = 1.0 if w == 0 else 2.0",
        "weight = 1.0",
        ("tests/compare/test_fsc.py",),
    ),
    Mutation(
        "sign: hybrid input-output pushes back",
        "src/orienteer/phase/iterations.py",
        "keep=1.0, add=-beta, reflect=0.0",
        "keep=1.0, add=beta, reflect=0.0",
        ("tests/phase/test_iterations.py",),
    ),
    Mutation(
        "mask: M-TIP solves inside the support alone",
        "src/orienteer/mtip/toeplitz.py",
        "out *= self.support",
        "out *= 1",
        ("tests/mtip/test_toeplitz.py",),
    ),
    Mutation(
        "normalisation: photons of a simulated shot follow its fluence",
        "src/orienteer/simulation/scattering.py",
        "fluence_r_e2 * truth.fluence[shots] * truth.line_weight",
        "fluence_r_e2 * truth.line_weight",
        ("tests/simulation/test_experiment.py",),
    ),
    Mutation(
        "convention: x is the fastest axis of an MRC file",
        "src/orienteer/volume/mrc.py",
        "np.ascontiguousarray(values.transpose(2, 1, 0))",
        "np.ascontiguousarray(values)",
        ("tests/volume/test_mrc.py",),
    ),
    Mutation(
        "atomic rename: a reader sees the old file or the new one",
        "src/orienteer/compute/atomic.py",
        "os.replace(temporary, final)",
        "final.write_bytes(temporary.read_bytes())",
        ("tests/compute/test_atomic.py",),
    ),
    Mutation(
        "atomic rename: the checkpoint before the last is kept",
        "src/orienteer/run/checkpoint.py",
        "os.replace(last, directory / PREVIOUS)",
        "last.unlink()",
        ("tests/run/test_checkpoint.py",),
    ),
    Mutation(
        "lock: one process works on a run",
        "src/orienteer/run/lock.py",
        "fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        ("tests/run/test_lock.py",),
    ),
    Mutation(
        "lock: a worker changes no job that is another's by now",
        "src/orienteer/campaign/jobs.py",
        "job.c.id == held.id, job.c.worker == held.worker, job.c.status",
        "job.c.id == held.id, job.c.status",
        ("tests/campaign/test_worker.py::test_a_worker_whose_job_was_taken_over_changes_nothing_of_it",),
    ),
    Mutation(
        "lock: pages of other sites open no connection to the dashboard",
        "src/orienteer/dashboard/access.py",
        "if (is_socket or method in _CHANGING) and not is_same_origin",
        "if method in _CHANGING and not is_socket and not is_same_origin",
        ("tests/dashboard/test_access.py",),
    ),
]


def check(root: Path, mutations: Sequence[Mutation]) -> list[int]:
    """Break each line in a copy of the tree at ``root`` and print who noticed; how its tests ended each."""
    for mutation in mutations:
        if (root / mutation.file).read_text().count(mutation.original) != 1:
            raise SystemExit(f"{mutation.file} does not hold once: {mutation.original}")
    ended = []
    with tempfile.TemporaryDirectory(prefix="orienteer-mutations-") as folder:
        whole = Path(folder) / "whole"
        copy_tree(root, whole)
        tests = sorted({test for mutation in mutations for test in mutation.tests})
        print(f"{len(tests)} files of tests pass before anything is broken ... ", end="", flush=True)
        status, words = run_tests(whole, tests)
        if status:
            raise SystemExit(f"no: they fail before anything is broken.\n{words}")
        print("yes")
        for number, mutation in enumerate(mutations, start=1):
            began = time.monotonic()
            broken = Path(folder) / "broken"
            break_line(whole, broken, mutation)
            status, words = run_tests(broken, mutation.tests)
            shutil.rmtree(broken)
            ended.append(status)
            said = _in_words(status, words)
            print(f"{number:3}  {mutation.meaning:<66} {time.monotonic() - began:4.0f} s  {said}", flush=True)
    print(f"{sum(map(is_caught, ended))} of {len(mutations)} caught")
    return ended


def copy_tree(root: Path, to: Path) -> None:
    """What tests need of a checkout, with what Numba has compiled."""
    to.mkdir()
    for name in COPIED:
        if (root / name).is_dir():
            shutil.copytree(root / name, to / name, ignore=shutil.ignore_patterns("*.pyc"))
        elif (root / name).exists():
            shutil.copy2(root / name, to / name)


def break_line(whole: Path, broken: Path, mutation: Mutation) -> None:
    """A copy of the tree with the line broken."""
    shutil.copytree(whole, broken)
    path = broken / mutation.file
    path.write_text(path.read_text().replace(mutation.original, mutation.broken))
    if path.stem.endswith("_numba"):
        # Functions of other files may hold this one, and Numba looks only at the file of each.
        for pattern in COMPILED:
            for compiled in broken.rglob(pattern):
                compiled.unlink()


def run_tests(tree: Path, tests: Sequence[str]) -> tuple[int, str]:
    """The exit status of pytest in a tree, with the package of that tree, and its last lines."""
    path = os.pathsep.join([str(tree / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, "\n".join((done.stdout + done.stderr).splitlines()[-30:])


def is_caught(status: int) -> bool:
    """Whether tests that ended with a status have noticed something."""
    return status == TESTS_FAILED or status < 0


def _in_words(status: int, words: str) -> str:
    if status < 0:
        return f"caught: signal {-status} ends the tests"
    failed = [line.split(" - ")[0] for line in words.splitlines() if line.startswith("FAILED ")]
    if status == TESTS_FAILED and failed:
        return "caught by " + failed[0].rpartition("::")[2]
    return "NOT CAUGHT" if status == 0 else f"NOT CAUGHT: tests could not be run\n{words}"


def keep(ended: Sequence[int], seconds: float) -> None:
    """Put the result among those of the benchmarks."""
    sys.path.insert(0, str(ROOT / "bench"))
    from machine import describe_machine, report

    result = {
        "problem": f"{len(MUTATIONS)} lines broken one at a time",
        "machine": describe_machine(),
        "broken": len(MUTATIONS),
        "caught": sum(map(is_caught, ended)),
        "of_these_by_a_crash": sum(status < 0 for status in ended),
        "seconds": round(seconds, 1),
    }
    report("mutations", result, keep=True)


if __name__ == "__main__":
    asked = [word for word in sys.argv[1:] if word != "--keep"]
    chosen = [each for each in MUTATIONS if not asked or any(word in each.meaning for word in asked)]
    if not chosen:
        raise SystemExit("no line has such a meaning; without a word all are broken.")
    start = time.monotonic()
    statuses = check(ROOT, chosen)
    if "--keep" in sys.argv and len(chosen) == len(MUTATIONS):
        keep(statuses, time.monotonic() - start)
    raise SystemExit(0 if all(map(is_caught, statuses)) else 1)
