"""What a beam time has done, in one database.

Everything below needs SQLAlchemy and alembic, which are an extra; who asks for a campaign without them is
told so.
"""

from importlib.util import find_spec

from orienteer.compute.extras import how_to_install
from orienteer.errors import OrienteerError

if find_spec("sqlalchemy") is None or find_spec("alembic") is None:
    raise OrienteerError(
        "campaigns need SQLAlchemy and alembic, which are not installed.",
        f"Install them: {how_to_install('campaign')}.",
    )
