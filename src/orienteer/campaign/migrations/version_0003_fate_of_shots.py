"""What became of a shot of a live run, and when it was received, which every such shot has."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; shots that are there have them where they had them before, in ``more``."""
    op.add_column("shot", sa.Column("fate", sa.SmallInteger))
    op.add_column("shot", sa.Column("received_s", sa.Double))
