"""What the card of a rehearsal says of itself."""

from typing import Any

_GiB = 2**30


class CUDARuntimeError(RuntimeError):
    """An error that CUDA returns."""


def getDeviceCount() -> int:
    return 1


def getDevice() -> int:
    return 0


def memGetInfo() -> tuple[int, int]:
    return 4 * _GiB, 8 * _GiB


def getDeviceProperties(device: int) -> dict[str, Any]:
    return {
        "name": b"rehearsal",
        "totalGlobalMem": 8 * _GiB,
        "major": 0,
        "minor": 0,
        "multiProcessorCount": 1,
    }


def deviceGetPCIBusId(device: int) -> str:
    return "0000:00:00.0"


def runtimeGetVersion() -> int:
    return 13000


def driverGetVersion() -> int:
    return 13000


def deviceSynchronize() -> None:
    pass
