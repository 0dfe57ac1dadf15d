"""Times of batch jobs: as people write them, in seconds, and as Slurm wants them."""

import math
import re

_UNITS = {"d": 86400, "h": 3600, "min": 60, "m": 60, "s": 1}
_WORDS = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|min|m|s)")
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+):(\d{2}):(\d{2})")


def parse_duration(text: str) -> int:
    """The time in seconds; a text that Slurm and people would read differently is refused.

    >>> [parse_duration(text) for text in ("4h", "1d 12h", "90min", "04:00:00", "1-12:00:00")]
    [14400, 129600, 5400, 14400, 129600]
    """
    told = text.strip().lower()
    if clock := _CLOCK.fullmatch(told):
        days, hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        return 86400 * days + 3600 * hours + 60 * minutes + seconds
    parts = _WORDS.findall(told)
    if parts and re.sub(r"\s", "", _WORDS.sub("", told)) == "":
        return math.ceil(sum(float(number) * _UNITS[unit] for number, unit in parts))
    if re.fullmatch(r"\d+:\d{2}", told):
        raise ValueError(
            f"Slurm reads '{text}' as minutes and seconds; write {told}:00, {told[:-3]}h or {told[:-3]}min"
        )
    if re.fullmatch(r"\d+", told):
        raise ValueError(f"'{text}' has no unit; write {told}min, {told}h or hours:minutes:seconds")
    raise ValueError(f"'{text}' is not a time; write it as 4h, 90min, 1d 12h or 04:00:00")


def slurm_time(seconds: int) -> str:
    """The time as an option of sbatch.

    >>> slurm_time(14400), slurm_time(129600)
    ('04:00:00', '1-12:00:00')
    """
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{clock}" if days else clock


def parse_slurm_time(text: str) -> int | None:
    """Seconds of a time that Slurm has printed; None if it is unlimited or not known.

    >>> parse_slurm_time("1-02:00:00"), parse_slurm_time("59:30"), parse_slurm_time("UNLIMITED")
    (93600, 3570, None)
    """
    told = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text.strip())
    if told is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in told.groups())
    return 86400 * days + 3600 * hours + 60 * minutes + seconds
