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
        raise ValueError("a job needs more time than 0; write it as 4h")
    return text


def _checked_word(text: str) -> str:
    """Refuse blanks and quotes, which would change the meaning of the script line with the value."""
    if not _WORD.fullmatch(text):
        raise ValueError("it must not contain blanks, quotes or signs of the shell")
    return text


def _split_options(told: Any) -> Any:
    """Split one text into several options, as on a command line."""
    return tuple(shlex.split(told)) if isinstance(told, str) else told


def _checked_options(options: tuple[str, ...]) -> tuple[str, ...]:
    for option in options:
        if not option.startswith("-") or "\n" in option:
            raise ValueError(f"'{option}' is not an option of sbatch: these begin with a dash")
    return options


Word = Annotated[str, AfterValidator(_checked_word)]
Options = Annotated[tuple[str, ...], BeforeValidator(_split_options), AfterValidator(_checked_options)]


class ClusterSettings(Section):
    """Nodes, time and account of a job; the template of the site may have defaults for the rest."""

    site: str = Field(default="generic", description="Name of a site, or the file of its template.")
    nodes: int = Field(default=1, ge=1, le=100_000, description="Number of nodes of a job.")
    ranks_per_node: int = Field(
        default=0, ge=0, le=4096, description="MPI ranks on each node; 0: one per GPU, or one."
    )
    gpus_per_node: int = Field(default=0, ge=0, le=64, description="GPUs to ask for on each node.")
    cores_per_rank: int = Field(
        default=0, ge=0, le=4096, description="Cores of each rank; 0: the default of the site."
    )
    memory_GiB_per_node: float = Field(
        default=0.0, ge=0, le=1e6, description="Memory of each node; 0: the default of the site."
    )
    time: Annotated[str, AfterValidator(_checked_time)] = Field(
        default="", description="Time limit of a job, such as 4h or 1d 12h; empty: that of the partition."
    )
    partition: Word = Field(default="", description="Partition, or several with commas.")
    account: Word = Field(default="", description="Account that is charged for the job.")
    qos: Word = Field(default="", description="Quality of service.")
    reservation: Word = Field(default="", description="Reservation, such as that of a beamtime.")
    constraint: Word = Field(default="", description="Features that nodes must have.")
    exclusive: bool = Field(default=False, description="Share no node with other jobs.")
    preemptible: bool = Field(
        default=False, description="Other jobs may preempt this one; it then queues again and resumes."
    )
    preemptible_options: Options = Field(
        default=(), description="Options of sbatch for preemptible jobs, such as --qos=preempt."
    )
    notice_s: int = Field(
        default=120, ge=10, le=7200, description="Seconds before its end at which a job saves and leaves."
    )
    chain: int = Field(
        default=1, ge=1, le=100, description="Most jobs in a row; each goes on where the last was cut off."
    )
    at_once: int = Field(default=0, ge=0, description="Most runs of an array at the same time; 0: all.")
    restarts: int = Field(
        default=2,
        ge=0,
        le=1000,
        description="How often a job starts again after a fault, such as a lost rank.",
    )
    mpi: Word = Field(
        default="", description="How srun starts ranks: pmi2, pmix, ...; empty: the default of the site."
    )
    environment: str = Field(
        default="", description="Archive made by orienteer pack, sent to the nodes; empty: this environment."
    )
    node_folder: Word = Field(
        default="/tmp", description="Folder on each node in which the archive is unpacked."
    )
    options: Options = Field(default=(), description="Further options of sbatch, such as --exclude=node7.")

    @field_validator("notice_s")
    @classmethod
    def _leaves_time_to_work(cls, notice_s: int, others: ValidationInfo) -> int:
        time = others.data.get("time", "")
        if time and parse_duration(time) <= 2 * notice_s:
            raise ValueError(
                f"a job of {time} has too little time to work if it must leave that early; "
                "give it more time (time), or less notice"
            )
        return notice_s

    @property
    def n_ranks_per_node(self) -> int:
        """Ranks on each node, with the default resolved."""
        return self.ranks_per_node or max(1, self.gpus_per_node)
