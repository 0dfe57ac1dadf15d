"""The ``[cluster]`` section: what a batch job asks Slurm for."""

import re
import shlex
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from orienteer.cluster.duration import parse_duration
from orienteer.settings.section import Section

_WORD = re.compile(r"[^\s'\"`$\\;#]*")


def _checked_time(text: str) -> str:
    if text and not parse_duration(text):
        raise ValueError("a job needs some time; write it such as 4h")
    return text


def _checked_word(text: str) -> str:
    """Values stand in lines of a script, where blanks and quotes would mean something else."""
    if not _WORD.fullmatch(text):
        raise ValueError("blanks, quotes and signs of the shell cannot be part of it")
    return text


def _split_options(told: Any) -> Any:
    """One text stands for several options, as on a command line."""
    return tuple(shlex.split(told)) if isinstance(told, str) else told


def _checked_options(options: tuple[str, ...]) -> tuple[str, ...]:
    for option in options:
        if not option.startswith("-") or "\n" in option:
            raise ValueError(f"'{option}' is no option of sbatch, which begin with a dash")
    return options


Word = Annotated[str, AfterValidator(_checked_word)]
Options = Annotated[tuple[str, ...], BeforeValidator(_split_options), AfterValidator(_checked_options)]


class ClusterSettings(Section):
    """Nodes, time and whose they are; a site's template has values of its own for what is not given here."""

    site: str = Field(default="generic", description="Name of a site, or the file of its template.")
    nodes: int = Field(default=1, ge=1, le=100_000, description="Nodes of a job.")
    ranks_per_node: int = Field(
        default=0, ge=0, le=4096, description="MPI ranks of a node; 0: one per GPU, or one."
    )
    gpus_per_node: int = Field(default=0, ge=0, le=64, description="GPUs of a node that are asked for.")
    cores_per_rank: int = Field(
        default=0, ge=0, le=4096, description="Cores of a rank; 0: as the site has it."
    )
    memory_GiB_per_node: float = Field(
        default=0.0, ge=0, le=1e6, description="Memory of a node; 0: as the site has it."
    )
    time: Annotated[str, AfterValidator(_checked_time)] = Field(
        default="", description="Longest time of a job, such as 4h or 1d 12h; empty: as the partition has it."
    )
    partition: Word = Field(default="", description="Partition, or several with commas.")
    account: Word = Field(default="", description="Account that pays.")
    qos: Word = Field(default="", description="Quality of service.")
    reservation: Word = Field(default="", description="Reservation, such as that of a beamtime.")
    constraint: Word = Field(default="", description="Features that nodes must have.")
    exclusive: bool = Field(default=False, description="Share no node with other jobs.")
    preemptible: bool = Field(
        default=False, description="The job may be sent away for others; it queues again and goes on."
    )
    preemptible_options: Options = Field(
        default=(), description="What sbatch is told for preemptible jobs, such as --qos=preempt."
    )
    notice_s: int = Field(
        default=120, ge=10, le=7200, description="Seconds before its end at which a job saves and leaves."
    )
    chain: int = Field(
        default=1, ge=1, le=100, description="Jobs in a row at most; each goes on where the last was cut off."
    )
    at_once: int = Field(default=0, ge=0, description="Runs of an array that work at once; 0: all.")
    restarts: int = Field(
        default=2,
        ge=0,
        le=1000,
        description="How often a job starts again after a fault, such as a lost rank.",
    )
    mpi: Word = Field(
        default="", description="How srun starts ranks: pmi2, pmix, ...; empty: as the site has it."
    )
    environment: str = Field(
        default="", description="Archive of orienteer pack, sent to the nodes; empty: this environment."
    )
    node_folder: Word = Field(
        default="/tmp", description="Folder of each node where the archive is unpacked."
    )
    options: Options = Field(default=(), description="Further options of sbatch, such as --exclude=node7.")

    @field_validator("notice_s")
    @classmethod
    def _leaves_time_to_work(cls, notice_s: int, others: ValidationInfo) -> int:
        time = others.data.get("time", "")
        if time and parse_duration(time) <= 2 * notice_s:
            raise ValueError(
                f"a job of {time} has no time to work if it is to leave so early; "
                "give it more (time), or less notice"
            )
        return notice_s

    @property
    def n_ranks_per_node(self) -> int:
        """Ranks of a node, decided."""
        return self.ranks_per_node or max(1, self.gpus_per_node)
