"""The runs, samples, jobs and shots of a beam time, in one database.

This package needs SQLAlchemy and alembic, which are an extra; without them, importing it raises an error that
says how to install them.
"""

from importlib.util import find_spec

from orienteer.compute.extras import how_to_install
from orienteer.errors import OrienteerError

if find_spec("sqlalchemy") is None or find_spec("alembic") is None:
    raise OrienteerError(
        "campaigns need SQLAlchemy and alembic, which are not installed.",
        f"Install them: {how_to_install('campaign')}.",
    )
