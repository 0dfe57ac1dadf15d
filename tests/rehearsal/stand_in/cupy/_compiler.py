"""CUDA sources compiled by g++ behind ``cuda_on_cpu.h``, once for each text, for all workers."""

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

_EMULATION = Path(__file__).parents[2] / "cuda_on_cpu"
_FILES = ("cuda_on_cpu.h", "signature.h", "scheduler.cpp")
_FLAGS = (
    "-O2", "-march=native", "-fPIC", "-w", "-fvisibility=hidden", "-fno-gnu-unique", "-fno-strict-aliasing",
    "-fno-math-errno", "-fno-trapping-math",
)  # fmt: skip
_KERNEL = re.compile(
    r"__global__\s+(?:void\s+)?(?:__launch_bounds__\s*\((?P<bounds>[^()]*)\)\s*)?(?:void\s+)?"
    r"(?P<name>\w+)\s*\("
)
_DYNAMIC = re.compile(r"extern\s+__shared__\s+([\w\s]+?)\s*(\w+)\s*\[\s*\]\s*;")
_ASM = re.compile(
    r'asm\s*(?:volatile\s*)?\(\s*"(?P<text>[^"]+)"\s*:\s*"=\w"\((?P<to>\w+)\)\s*:\s*"\w"\((?P<given>\w+)\)\s*\)'
)
# The instructions of PTX that sources use, as functions of cuda_on_cpu.h.
_INSTRUCTIONS = {
    "cvt.rn.f16.f32 %0, %1;": "rehearsal::half_of",
    "cvt.f32.f16 %0, %1;": "rehearsal::float_of",
}


# With the sanitizer of addresses loaded into Python, kernels are watched for any memory that is not theirs.
_WATCHED = "libasan" in os.environ.get("LD_PRELOAD", "")
_FLAGS += ("-g1", "-fsanitize=address", "--param=asan-stack=0", "--param=asan-globals=0") if _WATCHED else ()
# Each of these calls a function of scheduler.cpp, which ends the launch with the line of the source.
_CHECKS = "-fsanitize=null,alignment,bounds,shift,signed-integer-overflow,integer-divide-by-zero"


class CompileException(Exception):  # noqa: N818  (its name in CuPy)
    """What g++ says of a source."""


def library(code: str, options: tuple[str, ...]) -> ctypes.PyDLL:
    """The compiled source, loaded; calls keep other threads of Python out, as kernels share their state."""
    return _loaded(str(_compiled(code, options)))


@cache
def _loaded(path: str) -> ctypes.PyDLL:
    return ctypes.PyDLL(path)


def _compiled(code: str, options: tuple[str, ...]) -> Path:
    standard, defines, contract = "-std=c++17", [], "fast"
    for option in options:
        if option.startswith("-D"):
            defines.append(option)
        elif option.startswith(("-std=", "--std=")):
            standard = "-" + option.lstrip("-")
        elif option in ("-fmad=false", "--fmad=false"):
            contract = "off"
        else:
            raise CompileException(f"the rehearsal does not know the option {option!r}")

    def make(own: Path) -> None:
        text = _run(["g++", "-E", "-x", "c++", standard, *defines, "-"], code)
        source, compiled = own / "kernels.cpp", own / "kernels.o"
        source.write_text(translated(text))
        flags = [standard, *_FLAGS, _CHECKS, f"-ffp-contract={contract}", "-I", str(_EMULATION)]
        _run(["g++", *flags, "-c", str(source), "-o", str(compiled)])
        _run(["g++", "-shared", *_FLAGS, str(compiled), str(_scheduler()), "-o", str(own / "made")])

    return _kept(repr((code, standard, defines, contract)), ".so", make)


@cache
def _scheduler() -> Path:
    def make(own: Path) -> None:
        source = str(_EMULATION / "scheduler.cpp")
        _run(["g++", "-std=c++17", *_FLAGS, "-c", source, "-o", str(own / "made")])

    return _kept("scheduler", ".o", make)


def _kept(what: str, ending: str, make: Callable[[Path], None]) -> Path:
    """A file that ``make`` writes into a folder as ``made``, unless an earlier process has left it."""
    identity = repr((what, _FLAGS, _CHECKS, _version(), _emulation()))
    folder = Path(tempfile.gettempdir()) / f"orienteer-rehearsal-{os.getuid()}"
    path = folder / (hashlib.sha256(identity.encode()).hexdigest()[:32] + ending)
    if not path.exists():
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as own:
            make(Path(own))
            os.replace(Path(own) / "made", path)
    return path


def translated(text: str) -> str:
    """A preprocessed source as C++: shared memory in sections of its own, and an entry for each kernel."""
    text = _ASM.sub(_instruction, text)
    text = _DYNAMIC.sub(r"\1 *\2 = (\1 *)rehearsal_dynamic_shared;", text)
    kernels = {match["name"]: match["bounds"] for match in _KERNEL.finditer(text)}
    pieces = re.split(r"\b__shared__\b", text)
    shared = [f"rehearsal_shared_{number}" for number in range(len(pieces) - 1)]
    whole = pieces[0] + "".join(
        f'static __attribute__((section("{name}"))) {piece}'
        for name, piece in zip(shared, pieces[1:], strict=True)
    )
    ranges = ", ".join(f"{{__start_{name}, __stop_{name}}}" for name in shared) or "{nullptr, nullptr}"
    bounds = "".join(
        f'extern char __{end}_{name}[] __attribute__((weak, visibility("hidden")));\n'
        for name in shared
        for end in ("start", "stop")
    )
    entries = "".join(_entry(name, most) for name, most in kernels.items())
    return (
        f'#include "signature.h"\n{whole}\n#line 1 "entries"\n{bounds}'
        f"static const RehearsalShared all_shared[] = {{{ranges}}};\n{entries}"
    )


def _entry(name: str, most: str | None) -> str:
    return f"""
static void call_{name}(void **arguments) {{ rehearsal::apply({name}, arguments); }}
REHEARSAL_EXPORT const char *rehearsal_launch_{name}(void **arguments, const unsigned *grid,
                                                     const unsigned *block, size_t dynamic)
{{
    return rehearsal_run(call_{name}, arguments, grid, block, dynamic, all_shared,
                         sizeof all_shared / sizeof all_shared[0]);
}}
REHEARSAL_EXPORT const char *rehearsal_signature_{name}()
{{
    static const std::string text = rehearsal::signature({name});
    return text.c_str();
}}
REHEARSAL_EXPORT int rehearsal_threads_{name}() {{ return {most or 0}; }}
"""


def _instruction(match: re.Match[str]) -> str:
    if match["text"] not in _INSTRUCTIONS:
        raise CompileException(f"the rehearsal does not know the instruction {match['text']!r}")
    return f"{match['to']} = {_INSTRUCTIONS[match['text']]}({match['given']})"


@cache
def _version() -> str:
    if shutil.which("g++") is None:
        raise CompileException("a rehearsal needs g++, and there is none")
    return _run(["g++", "-march=native", "-Q", "--help=target"]) + _run(["g++", "--version"])


@cache
def _emulation() -> str:
    return "".join((_EMULATION / name).read_text() for name in _FILES)


def _run(command: list[str], given: str | None = None) -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CompileException(done.stderr[:8000])
    return done.stdout
