"""Rules, and the steps that they ask for."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
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
        sa.Column(
            "run_id", sa.Integer, sa.ForeignKey("run.id", ondelete="CASCADE"), nullable=False, index=True
        ),
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
