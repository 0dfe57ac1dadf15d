"""The first layout: samples, runs with what is known of them, their shots, rules and their jobs."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _of_run(**options: bool) -> "sa.Column[int]":
    reference = sa.ForeignKey("run.id", name=None, ondelete="CASCADE")
    return sa.Column("run_id", sa.Integer, reference, nullable=False, **options)  # type: ignore[arg-type]


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "sample",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("about", sa.Text, nullable=False, server_default=""),
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("sample_id", sa.Integer, sa.ForeignKey("sample.id"), nullable=True, index=True),
        sa.Column("kind", sa.String(40), nullable=False, server_default=""),
        sa.Column("folder", sa.Text, nullable=True),
        sa.Column("data", sa.Text, nullable=True, index=True),
        sa.Column("is_open", sa.SmallInteger, nullable=False, server_default="0"),
        sa.Column("created_s", sa.Double, nullable=False),
        sa.Column("modified_s", sa.Double, nullable=False, index=True),
        sa.Column("n_shots", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("n_hits", sa.BigInteger, nullable=False, server_default="0"),
    )
    for name in ("parameter", "result"):
        op.create_table(
            name,
            _of_run(primary_key=True),
            sa.Column("name", sa.String(200), primary_key=True),
            sa.Column("value", sa.Text, nullable=False),
        )
    op.create_table(
        "file",
        _of_run(primary_key=True),
        sa.Column("role", sa.String(200), primary_key=True),
        sa.Column("path", sa.Text, nullable=False),
    )
    op.create_table(
        "tag", _of_run(primary_key=True), sa.Column("name", sa.String(64), primary_key=True, index=True)
    )
    op.create_table(
        "note",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("key", sa.String(32), nullable=False, unique=True),
        _of_run(index=True),
        sa.Column("time_s", sa.Double, nullable=False),
        sa.Column("author", sa.String(200), nullable=False, server_default=""),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_table(
        "segment",
        sa.Column("id", sa.Integer, primary_key=True),
        _of_run(),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("n_shots", sa.Integer, nullable=False),
        sa.UniqueConstraint("run_id", "name"),
    )
    op.create_table(
        "shot",
        sa.Column("segment_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("event_id", sa.BigInteger, nullable=False),
        sa.Column("time_s", sa.Double),
        sa.Column("is_hit", sa.SmallInteger),
        sa.Column("photons", sa.Double),
        sa.Column("n_lit", sa.Double),
        sa.Column("hit_score", sa.Double),
        sa.Column("size_A", sa.Double),
        sa.Column("brightness", sa.Double),
        sa.Column("fit_quality", sa.Double),
        sa.Column("kind", sa.SmallInteger),
        sa.Column("wavelength_A", sa.Double),
        sa.Column("pulse_energy_J", sa.Double),
        sa.Column("fate", sa.SmallInteger),
        sa.Column("received_s", sa.Double),
        sa.Column("more", sa.Text),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "shot_column",
        _of_run(primary_key=True),
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("n", sa.BigInteger, nullable=False),
        sa.Column("least", sa.Double, nullable=False),
        sa.Column("most", sa.Double, nullable=False),
        sa.Column("total", sa.Double, nullable=False),
    )
    op.create_table(
        "rule",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("is_on", sa.SmallInteger, nullable=False, server_default="1"),
        sa.Column("since_s", sa.Double, nullable=False),
    )
    op.create_table(
        "job",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("rule_id", sa.Integer, sa.ForeignKey("rule.id", ondelete="CASCADE"), nullable=False),
        _of_run(index=True),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("step", sa.String(40), nullable=False),
        sa.Column("arguments", sa.Text, nullable=False),
        sa.Column("folder", sa.Text, nullable=False),
        sa.Column("product", sa.Text, nullable=True),
        sa.Column("status", sa.String(20), nullable=False, server_default="waiting", index=True),
        sa.Column("reason", sa.Text, nullable=False, server_default=""),
        sa.Column("attempt", sa.Integer, nullable=False, server_default="0"),
        sa.Column("begun", sa.Integer, nullable=False, server_default="0"),
        sa.Column("worker", sa.String(200), nullable=False, server_default=""),
        sa.Column("lease_s", sa.Double, nullable=False, server_default="0"),
        sa.Column("slurm", sa.Text, nullable=False, server_default=""),
        sa.Column("created_s", sa.Double, nullable=False),
        sa.Column("started_s", sa.Double, nullable=True),
        sa.Column("ended_s", sa.Double, nullable=True),
        sa.UniqueConstraint("rule_id", "run_id", "number"),
    )
