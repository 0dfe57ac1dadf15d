"""The one device."""

from contextlib import AbstractContextManager
from typing import Any


class Device(AbstractContextManager["Device"]):
    """A card by its number."""

    def __init__(self, device: Any = None) -> None:
        self.id = 0 if device is None else int(getattr(device, "id", device))
        if self.id != 0:
            raise ValueError(f"there is no device {self.id} in a rehearsal")

    def synchronize(self) -> None:
        pass

    def use(self) -> "Device":
        return self

    @property
    def mem_info(self) -> tuple[int, int]:
        from cupy.cuda import runtime

        return runtime.memGetInfo()

    def __exit__(self, *error: Any) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return self.id

    def __int__(self) -> int:
        return self.id

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"


def get_cublas_handle() -> int:
    return 1
