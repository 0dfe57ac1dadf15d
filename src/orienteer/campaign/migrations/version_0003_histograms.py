"""Histograms of the columns of the shots of each run, counted once from the shots in the database."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import sqlalchemy as sa
from alembic import op
from numpy.typing import NDArray

from orienteer.campaign.bins import Bins

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_SHOTS = sa.text("SELECT * FROM shot WHERE segment_id = :segment")
_NO_COLUMNS = ("segment_id", "number", "event_id", "more")


def upgrade() -> None:
    """Rebuild the table of columns with histograms."""
    connection = op.get_bind()
    if "counts" in {column["name"] for column in sa.inspect(connection).get_columns("shot_column")}:
        return  # for a while, new campaigns of layout 0002 already had them
    known = connection.execute(sa.text("SELECT * FROM shot_column")).mappings().all()
    op.drop_table("shot_column")
    reference = sa.ForeignKey("run.id", name=None, ondelete="CASCADE")
    table = op.create_table(
        "shot_column",
        sa.Column("run_id", sa.Integer, reference, primary_key=True),
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("n", sa.BigInteger, nullable=False),
        sa.Column("least", sa.Double, nullable=False),
        sa.Column("most", sa.Double, nullable=False),
        sa.Column("total", sa.Double, nullable=False),
        sa.Column("exponent", sa.Integer, nullable=False),
        sa.Column("first", sa.BigInteger, nullable=False),
        sa.Column("counts", sa.LargeBinary, nullable=False),
    )
    for run_id in sorted({row["run_id"] for row in known}):
        found = _histograms(connection, run_id)
        rows = [dict(row) for row in known if row["run_id"] == run_id and row["name"] in found]
        kept = {
            name: {"exponent": bins.exponent, "first": bins.first, "counts": bins.as_bytes()}
            for name, bins in found.items()
        }
        op.bulk_insert(table, [{**row, **kept[row["name"]]} for row in rows])


def _histograms(connection: sa.Connection, run_id: int) -> dict[str, Bins]:
    """The histogram of every column of the shots of a run, read segment by segment."""
    found: dict[str, Bins] = {}
    segments = sa.text("SELECT id FROM segment WHERE run_id = :run ORDER BY id")
    for segment in connection.execute(segments, {"run": run_id}).scalars().all():
        rows = connection.execute(_SHOTS, {"segment": segment}).mappings().all()
        for name, values in _columns(rows):
            bins = Bins.of(values)
            found[name] = found[name] + bins if name in found else bins
    return found


def _columns(rows: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    """Names and values (n,) of the columns of these shots; n counts the shots that have a value."""
    columns: dict[str, list[float]] = {}
    for row in rows:
        named = {name: value for name, value in row.items() if name not in _NO_COLUMNS}
        for name, value in (named | json.loads(row["more"] or "{}")).items():
            if value is not None:
                columns.setdefault(name[:200], []).append(value)
    for name, given in columns.items():
        values = np.array(given, dtype=np.float64)
        # The database stores integers as doubles; turn them back, as integers have bins at least 1 wide.
        is_whole = np.all(values == np.floor(values)) and np.abs(values).max() < 2**53
        yield name, values.astype(np.int64) if is_whole else values
