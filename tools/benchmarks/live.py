"""Streams, hits, growing maps, the database and the web page."""

from typing import Any

from benchmarks.figure import Figure, at_least, at_most


def _means(result: dict[str, Any], name: str) -> list[tuple[float, str]]:
    """Mean precision or recall over the streams of each particle in per cent, ascending, and the particle."""
    of_particle: dict[str, list[float]] = {}
    for case in result["cases"]:
        of_particle.setdefault(case["object"], []).append(100 * case[name])
    return sorted((sum(values) / len(values), particle) for particle, values in of_particle.items())


def _least(name: str) -> Any:
    """The mean of the particle for which it is least."""
    return lambda result: _means(result, name)[0][0]


def _which(name: str) -> Any:
    """That particle, how the others do, and the worst stream of all."""

    def words(result: dict[str, Any]) -> str:
        (_, worst), *others = _means(result, name)
        told = ", ".join(f"{particle} {mean:.1f}" for mean, particle in others)
        least = 100 * min(case[name] for case in result["cases"])
        return f"{worst}; {told}: means of {len(result['cases'])} streams, of which the worst has {least:.1f}"

    return words


_TWO_DOMAIN = {
    "2026-11-16": "of the two-domain particle with 300 photons a quarter of the debris would pass even if "
    "all shapes were known (`kinds_oracle.json`); the other particles reach the goal"
}
_LIVE = "python bench/live.py --keep"
_KINDS = "python bench/kinds.py --keep"
_ORDER = "python bench/online.py order --keep"
_FAULTS = "python bench/live_faults.py --postgres --keep"
_PAGE = "python bench/dashboard.py --keep"


def _first_map_s(result: dict[str, Any]) -> float:
    """Seconds from the hit number 2000 to the first map that shows what the last one shows."""
    return result["first_map_at"]["at_s"] - 2000 / result["arrived_per_s"]


FIGURES = [
    Figure(
        "Frames of 128² over ZeroMQ into another process",
        at_least(2000, "frames/s"),
        "stream_cpu",
        lambda r: r["as_fast_as_it_can"]["events_per_s"],
        "python bench/stream.py --keep",
    ),
    Figure(
        "Calibration and hit finding, one core",
        at_least(2000, "frames/s"),
        "hits_cpu",
        lambda r: r["shots_per_second"]["both"],
        "python bench/hits.py --keep",
        remark=lambda r: f"{r['shots_per_second']['both with common mode']} with the common mode",
    ),
    Figure(
        "Stream, calibration and hit finding for ten minutes, 2 cores",
        at_least(2000, "frames/s"),
        "live",
        lambda r: r["frames_per_s"],
        _LIVE,
        remark=lambda r: f"{r['seconds']:.0f} s",
        plain="Frames from a stream, calibrated and searched for hits for ten minutes, 2 cores",
    ),
    Figure("Events lost in these ten minutes", at_most(0), "live", lambda r: r["lost"], _LIVE),
    Figure(
        "Rise of the worker's memory in these ten minutes",
        at_most(1, "MiB/min"),
        "live",
        lambda r: r["memory"]["worker"]["MiB_per_minute"],
        _LIVE,
    ),
    Figure(
        "Hits that a growing map takes in, 2 cores",
        at_least(100, "hits/s"),
        "online_rate_cpu",
        lambda r: r["looked_at_per_s"],
        "python bench/online.py rate --keep",
    ),
    Figure(
        "Calibration and hit finding, GPU",
        at_least(50_000, "frames/s"),
        "hits_cuda",
        lambda r: r["shots_per_second"]["both"],
        "python bench/hits.py --device cuda --keep",
    ),
    Figure(
        "Hits that a growing map takes in, GPU",
        at_least(5000, "hits/s"),
        "online_rate_cuda",
        lambda r: r["looked_at_per_s"],
        "python bench/online.py rate --device cuda --keep",
    ),
    Figure(
        "First map that shows the particle, after 2 000 hits have come, GPU",
        at_most(60, "s"),
        "online_rate_cuda",
        _first_map_s,
        "python bench/online.py rate --device cuda --keep",
        remark=lambda r: f"{r['arrived_per_s']:,.0f} hits/s arrive meanwhile".replace(",", " "),
    ),
    Figure(
        "A grown map against the batch, resolution, worst of the orders of arrival",
        at_most(5, "%"),
        "online_order_cpu",
        lambda r: 100 * max(r["largest_difference"].values()),
        _ORDER,
    ),
    Figure(
        "Spread of the resolution over orders of arrival",
        at_most(5, "%"),
        "online_order_cpu",
        lambda r: 100 * max(r["spread_of_orders"].values()),
        _ORDER,
    ),
    *(
        Figure(
            f"Single particles told from junk: {name}, {words}",
            at_least(least, "%"),
            result,
            _least(name),
            command,
            remark=_which(name),
            because=_TWO_DOMAIN if (result, name) == ("kinds", "precision") else {},
        )
        for result, words, command in (
            ("kinds", "with droplets", _KINDS),
            ("kinds_without_droplets", "without droplets", "python bench/kinds.py --droplets 0 --keep"),
        )
        for name, least in (("precision", 98), ("recall", 95))
    ),
    Figure(
        "Processes killed at random during a replay: events lost or counted twice",
        at_most(0),
        "live_faults_postgresql",
        lambda r: float(
            not (r["each_event_is_once_in_the_journal"] and r["each_event_is_once_in_the_database"])
        ),
        _FAULTS,
        remark=lambda r: f"{sum(r['kills'].values())} kills, {r['events']} events",
    ),
    *(
        Figure(
            f"Rows of shots into {words}, 4 writers",
            at_least(8000, "rows/s"),
            "campaign_cpu",
            lambda r, name=name: r[name]["rows_per_s"],
            "python bench/campaign.py --keep",
            plain="Shots entered into a database (PostgreSQL) by 4 writers" if name == "postgresql" else "",
            published="Blaschke et al. 2024: up to 8 000 commits/s",
        )
        for name, words in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL"))
    ),
    Figure(
        "A campaign of 1 000 000 shots opens on the page",
        at_most(1, "s"),
        "dashboard_cpu",
        lambda r: r["seconds"]["campaign"]["first"],
        _PAGE,
    ),
    Figure(
        "Requests of strangers that were served",
        at_most(0),
        "dashboard_cpu",
        lambda r: r["strangers"]["served"],
        _PAGE,
        remark=lambda r: f"of {r['strangers']['requests']}",
    ),
]
