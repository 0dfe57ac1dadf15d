"""The current tables of a campaign; ``migrations`` holds the steps that lead to them.

Times are seconds since 1970 (UTC), paths are text as given, lists and mappings are JSON text.  What a page
shows of a run without reading its shots (``n_shots``, ``n_hits``, ``shot_column``) is updated in the same
transaction that adds shots, so it is always right and cheap to read.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
)

# Names of constraints that do not depend on the database, so that a later migration can refer to them.
metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _of_run(**options: Any) -> Column[int]:
    return Column("run_id", Integer, ForeignKey("run.id", ondelete="CASCADE"), nullable=False, **options)


sample = Table(
    "sample",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("about", Text, nullable=False, server_default=""),
)

# is_open: shots may still come.  data: what was measured; folder: where the run is worked on.
run = Table(
    "run",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("sample_id", Integer, ForeignKey("sample.id"), nullable=True),
    Column("kind", String(40), nullable=False, server_default=""),
    Column("folder", Text, nullable=True),
    Column("data", Text, nullable=True),
    Column("is_open", SmallInteger, nullable=False, server_default="0"),
    Column("created_s", Double, nullable=False),
    Column("modified_s", Double, nullable=False),
    Column("n_shots", BigInteger, nullable=False, server_default="0"),
    Column("n_hits", BigInteger, nullable=False, server_default="0"),
    Index(None, "sample_id"),
    Index(None, "modified_s"),
    Index(None, "data"),
)

# What a run was made with, by dotted name, and what came out of it; values are JSON.
parameter = Table(
    "parameter",
    metadata,
    _of_run(primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("value", Text, nullable=False),
)
result = Table(
    "result",
    metadata,
    _of_run(primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("value", Text, nullable=False),
)
file = Table(
    "file",
    metadata,
    _of_run(primary_key=True),
    Column("role", String(200), primary_key=True),
    Column("path", Text, nullable=False),
)

tag = Table(
    "tag",
    metadata,
    _of_run(primary_key=True),
    Column("name", String(64), primary_key=True),
    Index(None, "name"),
)
# Tags of single frames; event_id is the unsigned number reinterpreted as signed.
frame_tag = Table(
    "frame_tag",
    metadata,
    _of_run(primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("event_id", BigInteger, primary_key=True, autoincrement=False),
)
# key: made by the writer of the note, so that a note that is sent twice is stored once.
note = Table(
    "note",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", String(32), nullable=False, unique=True),
    _of_run(index=True),
    Column("time_s", Double, nullable=False),
    Column("author", String(200), nullable=False, server_default=""),
    Column("text", Text, nullable=False),
)

# A batch of shots that was added in one transaction: it exists with all of its shots, or not at all.
segment = Table(
    "segment",
    metadata,
    Column("id", Integer, primary_key=True),
    _of_run(),
    Column("name", String(200), nullable=False),
    Column("n_shots", Integer, nullable=False),
    UniqueConstraint("run_id", "name"),
)
# One row per shot, in the order of arrival: a new row always goes to the end of the table.  event_id is the
# unsigned number reinterpreted as signed.  No foreign key: checking each row would cost more than adding it.
shot = Table(
    "shot",
    metadata,
    Column("segment_id", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("event_id", BigInteger, nullable=False),
    Column("time_s", Double),
    Column("is_hit", SmallInteger),
    Column("photons", Double),
    Column("n_lit", Double),
    Column("hit_score", Double),
    Column("size_A", Double),
    Column("brightness", Double),
    Column("fit_quality", Double),
    Column("kind", SmallInteger),
    Column("wavelength_A", Double),
    Column("pulse_energy_J", Double),
    Column("fate", SmallInteger),
    Column("received_s", Double),
    Column("more", Text),
    sqlite_with_rowid=False,
)
# Number, least, most, sum and histogram (Bins) of the values in one column of the shots of a run.
shot_column = Table(
    "shot_column",
    metadata,
    _of_run(primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("n", BigInteger, nullable=False),
    Column("least", Double, nullable=False),
    Column("most", Double, nullable=False),
    Column("total", Double, nullable=False),
    Column("exponent", Integer, nullable=False),
    Column("first", BigInteger, nullable=False),
    Column("counts", LargeBinary, nullable=False),
)

# definition: the rule as JSON.  since_s: the rule applies to runs created at this time or later.
rule = Table(
    "rule",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("definition", Text, nullable=False),
    Column("is_on", SmallInteger, nullable=False, server_default="1"),
    Column("since_s", Double, nullable=False),
)
# A step of a rule for a run.  status: waiting, working, queued (in Slurm), done or failed.
# worker holds it until lease_s.  attempt numbers the attempts and never decreases; begun counts those since
# the step was planned or last retried.
job = Table(
    "job",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("rule_id", Integer, ForeignKey("rule.id", ondelete="CASCADE"), nullable=False),
    _of_run(),
    Column("number", Integer, nullable=False),
    Column("step", String(40), nullable=False),
    Column("arguments", Text, nullable=False),
    Column("folder", Text, nullable=False),
    Column("product", Text, nullable=True),
    Column("status", String(20), nullable=False, server_default="waiting"),
    Column("reason", Text, nullable=False, server_default=""),
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("begun", Integer, nullable=False, server_default="0"),
    Column("worker", String(200), nullable=False, server_default=""),
    Column("lease_s", Double, nullable=False, server_default="0"),
    Column("slurm", Text, nullable=False, server_default=""),
    Column("created_s", Double, nullable=False),
    Column("started_s", Double, nullable=True),
    Column("ended_s", Double, nullable=True),
    UniqueConstraint("rule_id", "run_id", "number"),
    Index(None, "status"),
    Index(None, "run_id"),
)
