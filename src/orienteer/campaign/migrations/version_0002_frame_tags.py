"""Tags of single frames."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    reference = sa.ForeignKey("run.id", name=None, ondelete="CASCADE")
    op.create_table(
        "frame_tag",
        sa.Column("run_id", sa.Integer, reference, primary_key=True),
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("event_id", sa.BigInteger, primary_key=True, autoincrement=False),
    )
