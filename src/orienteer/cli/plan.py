"""``orienteer plan``: where and how a reconstruction would run, and the memory and time it would take."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.markup import escape

from orienteer.cli.console import messages, print_json, print_table
from orienteer.cli.opening import open_patterns
from orienteer.cli.options import (
    AsJson,
    Device,
    DistanceM,
    Geometry,
    Overrides,
    SettingsFile,
    WavelengthA,
    with_flags_of,
)
from orienteer.cli.progress import show_steps
from orienteer.errors import SettingsError
from orienteer.reconstruction.settings import EmcSettings

if TYPE_CHECKING:
    from orienteer.reconstruction.emc import Emc
    from orienteer.scaling.machines import Machine

_CLUSTER = "A cluster"
MethodName = Literal["emc", "mtip", "auto"]
MachineName = Literal["h200", "cores"]
NetworkName = Literal["ndr", "slingshot", "qdr"]


@with_flags_of("emc", EmcSettings)
def plan(
    data: Annotated[Path, typer.Argument(help="Patterns, in any known format.")],
    settings: SettingsFile = None,
    set_: Overrides = [],  # noqa: B006 - typer makes a new list for each call
    geometry: Geometry = None,
    wavelength_A: WavelengthA = None,
    distance_m: DistanceM = None,
    device: Device = "auto",
    as_json: AsJson = False,
    nodes: Annotated[
        int,
        typer.Option(
            "--nodes",
            help="Plan for this many nodes of a cluster; 0: for this machine.",
            min=0,
            max=100_000,
            rich_help_panel=_CLUSTER,
        ),
    ] = 0,
    gpus_per_node: Annotated[
        int,
        typer.Option(
            "--gpus-per-node",
            help="GPUs (or cores) per node, one rank each; 0: as many as the machine has.",
            min=0,
            max=1024,
            rich_help_panel=_CLUSTER,
        ),
    ] = 0,
    machine: Annotated[
        MachineName, typer.Option("--machine", help="Hardware of a rank.", rich_help_panel=_CLUSTER)
    ] = "h200",
    network: Annotated[
        NetworkName, typer.Option("--network", help="Network between the nodes.", rich_help_panel=_CLUSTER)
    ] = "ndr",
    latency_us: Annotated[
        float | None,
        typer.Option(
            "--latency-us",
            help="Latency of a message in microseconds; by default that of the network.",
            min=0.0,
            rich_help_panel=_CLUSTER,
        ),
    ] = None,
    bandwidth_GBs: Annotated[
        float | None,
        typer.Option(
            "--bandwidth-GBs",
            help="Bandwidth of a rank in GB/s; by default that of the network.",
            min=0.001,
            rich_help_panel=_CLUSTER,
        ),
    ] = None,
    frames: Annotated[
        int,
        typer.Option(
            "--frames",
            help="Plan as if there were this many frames like these; 0: those of the data.",
            min=0,
            rich_help_panel=_CLUSTER,
        ),
    ] = 0,
    method: Annotated[
        MethodName, typer.Option("--method", help="Method to plan for.", rich_help_panel=_CLUSTER)
    ] = "emc",
    *,
    flags: list[str],
) -> None:
    """Show how a reconstruction would run: device, precision, tiles, batches, memory and expected time.

    With --nodes: the time that a performance model predicts for a cluster, and the mesh of ranks to use.
    """
    from orienteer.reconstruction.emc import Emc
    from orienteer.run.settings import Settings
    from orienteer.settings.loading import load_settings

    asked = {"--frames": frames, "--gpus-per-node": gpus_per_node, "--latency-us": latency_us}
    asked |= {
        "--bandwidth-GBs": bandwidth_GBs,
        "--method": method != "emc",
        "--machine": machine != "h200",
        "--network": network != "ndr",
    }
    idle = [name for name, value in asked.items() if value]
    if idle and not nodes:
        raise SettingsError(
            f"{' and '.join(idle)} {'are' if len(idle) > 1 else 'is'} for plans of a cluster.",
            "Give the number of nodes, for example --nodes 2.",
        )
    chosen = load_settings(Settings, settings, [*set_, *flags], ("emc",))
    if nodes and chosen.emc.mesh != "auto":
        raise SettingsError("a plan of a cluster chooses the mesh itself.", "Leave out --mesh.")
    source = open_patterns(data, geometry, wavelength_A, distance_m)
    with show_steps("Planning"):
        emc = Emc(source, chosen.emc, device=device)
    if nodes:
        chosen_machine = _machine(machine, gpus_per_node, network, latency_us, bandwidth_GBs)
        name: Literal["emc", "mtip"] = "mtip" if method == "mtip" else "emc"
        if method == "auto":
            from orienteer.run.choice_of_method import choose_method

            choice = choose_method(source, chosen.emc)
            name = "mtip" if choice.name == "mtip" else "emc"
            messages.print(f"[dim]{escape(choice.because)}[/]", soft_wrap=True)
        _print_prediction(emc, nodes, chosen_machine, frames, name, as_json)
        return
    if as_json:
        print_json({**emc.plan.to_json(), "remarks": emc.remarks})
        return
    print_table(emc.plan.describe())
    for remark in emc.remarks:
        messages.print(f"[dim]{escape(remark)}[/]", soft_wrap=True)


def _machine(
    machine: MachineName, gpus_per_node: int, network: NetworkName, latency_us: float | None,
    bandwidth_GBs: float | None,
) -> "Machine":  # fmt: skip
    """The chosen machine with the chosen network."""
    from orienteer.scaling.machines import MACHINES
    from orienteer.scaling.network import NETWORKS

    links = NETWORKS[network]
    if latency_us is not None:
        links = replace(links, latency_s=latency_us * 1e-6)
    if bandwidth_GBs is not None:
        links = replace(links, bandwidth=bandwidth_GBs * 1e9)
    if latency_us is not None or bandwidth_GBs is not None:
        told = f"{links.latency_s * 1e6:g} us and {links.bandwidth / 1e9:g} GB/s, from the command line"
        links = replace(links, source=told)
    chosen = MACHINES[machine]
    ranks = gpus_per_node or (1 if machine == "cores" else chosen.ranks_per_node)
    return replace(chosen, ranks_per_node=ranks, network=links)


def _print_prediction(
    emc: "Emc", nodes: int, machine: "Machine", frames: int, method: Literal["emc", "mtip"], as_json: bool
) -> None:
    """Print what the performance model predicts for a cluster."""
    from orienteer.reconstruction.plan import count_poses
    from orienteer.scaling.prediction import best_mesh
    from orienteer.scaling.problem import Problem
    from orienteer.scaling.words import describe_prediction, prediction_json

    plan = emc.plan
    problem = Problem(
        frames or plan.n_frames, plan.n_pixels,
        count_poses(max(stage.level for stage in emc.stages), emc.group.order), plan.edge_voxels,
        emc.frames.lit_share, emc.n_models, emc.n_halves, method, emc.settings.oversampling,
    )  # fmt: skip
    found = best_mesh(problem, machine, nodes * machine.ranks_per_node)
    alone = best_mesh(problem, machine, 1)
    if as_json:
        print_json(prediction_json(found, alone))
        return
    print_table(describe_prediction(found, alone))
