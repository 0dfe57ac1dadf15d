"""A single-particle experiment made of photons that never flew.

``orienteer.simulate`` is both this folder and the function that users call.  Python binds the folder's name
as soon as any module in it is imported, so the folder is made callable and hands the call on.
"""

import sys
from types import ModuleType
from typing import Any


class _CallableFolder(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        from orienteer.simulate.experiment import simulate

        return simulate(*arguments, **options)


sys.modules[__name__].__class__ = _CallableFolder
