"""Results that no goal is set for: what each file under ``bench/results`` came to, in words."""

from collections.abc import Callable
from statistics import mean, median
from typing import Any

from benchmarks.figure import Result, plain_number


def _data_efficiency(result: Result) -> str:
    """Mean correlation of both methods, for the fewest and for the most photons in all."""
    runs = result["runs"]
    sizes = sorted({(run["frames"], run["photons"]) for run in runs}, key=lambda each: each[0] * each[1])
    told = []
    for size in (sizes[0], sizes[-1]):
        own = [run for run in runs if (run["frames"], run["photons"]) == size]
        of_methods = [
            f"{words} {mean(run['correlation'] for run in own if run['method'] == method):.2f}"
            for method, words in (("emc", "EMC"), ("mtip", "M-TIP"))
        ]
        frames, photons = map(plain_number, size)
        told.append(f"{frames} frames of {photons} photons: {', '.join(of_methods)}")
    return "mean correlation; " + "; ".join(told)


def _blind(result: Result) -> str:
    """Successes, and the least and the greatest correlation with the truth."""
    runs = result["runs"]
    found = sorted(run["correlation"] for run in runs)
    return (
        f"{sum(bool(run['success']) for run in runs)} of {len(runs)} runs of "
        f"{' and '.join(sorted({run['object'] for run in runs}))} succeeded; correlation {found[0]:.3f} to "
        f"{found[-1]:.3f}"
    )


def _dirt(result: Result) -> str:
    clean, dirty = result["summary"]["clean"], result["summary"]["background"]
    return (
        f"resolution {clean['resolution_A']:g} Å without background, {dirty['resolution_A']:g} Å with one as "
        "strong as the signal"
    )


def _kills(result: Result) -> str:
    runs = result["runs"]
    same = sum(run["identical"] for run in runs)
    return (
        f"{same} of {len(runs)} runs ended with the same answer to the bit, in spite of "
        f"{sum(len(run['kills']) for run in runs)} kills in all"
    )


def _kinds_oracle(result: Result) -> str:
    most = {
        kind: 100 * max(case[kind]["both"] for case in result["cases"]) for kind in ("debris", "droplets")
    }
    return f"at most {most['debris']:.0f} % of debris and {most['droplets']:.0f} % of droplets pass"


def _live_map(result: Result) -> str:
    return (
        f"{plain_number(result['frames_per_s'])} frames/s, {result['lost']} lost; first map after "
        f"{result['map']['first_map_after_s']:g} s, {result['map']['hits_per_s']:.0f} hits/s taken in; "
        f"memory of the map's process grows by {result['memory']['map']['MiB_per_minute']:.0f} MiB/min"
    )


def _references_alone(result: Result) -> str:
    """How much longer the way took that was chosen for slices than the quickest that was tried."""
    cases = [
        case
        for name, of_batch in result.items()
        if name.endswith(" frames in a batch")
        for case in of_batch["foretold"].values()
    ]
    longer = [each["measured"][_chosen(each)] / min(each["measured"].values()) for each in cases]
    return (
        f"the way that is chosen for slices takes {median(longer):.2f} times as long as the quickest of "
        f"three (median of {len(longer)} cases), {max(longer):.2f} times at most"
    )


def _chosen(case: dict[str, Any]) -> str:
    return "recompute" if "made anew" in case["chosen"].split(",")[0] else "replicate"


def _scaling(result: Result) -> str:
    seconds = [run["processor_seconds"] for run in result["runs"]]
    return f"{min(seconds):.2g} to {max(seconds):.2g} s an iteration in {len(seconds)} sizes"


def _links(result: Result) -> str:
    return "; ".join(
        f"{run['ranks']} ranks: {1e6 * run['latency_s']:.2g} µs, {run['bandwidth'] / 1e9:.2g} GB/s"
        for run in result["runs"]
    )


def _stages(result: Result) -> str:
    seconds = {
        name: median(sum(step["seconds"].values()) for step in steps)
        for name, steps in result["runs"].items()
    }
    return f"median of the steps: EMC {seconds['emc']:.2g} s, M-TIP {seconds['mtip']:.2g} s"


# By the name of the file, without its ending.
OTHERS: dict[str, Callable[[Result], str]] = {
    "blind_emc_cpu": _blind,
    "data_efficiency_cpu": _data_efficiency,
    "data_efficiency_cuda": _data_efficiency,
    "dirt_cuda": _dirt,
    "kills_cpu": _kills,
    "kills_cuda": _kills,
    "kinds_oracle": _kinds_oracle,
    "live_map": _live_map,
    "references_alone": _references_alone,
    "scaling_cpu": _scaling,
    "scaling_links_cpu": _links,
    "scaling_stages_cpu": _stages,
}
