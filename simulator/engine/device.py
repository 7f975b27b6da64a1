"""Settings of JAX that a study's results and speed depend on, made in one place."""

import contextlib
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..files import cache

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
"""With more threads a run burns twice the processor time for the same wall time."""
NUM_THREADS = "NPROC"
"""Variable by which XLA sizes its pool of threads; idle ones burn as much again."""
STORES_APART = "--xla_backend_extra_options=-combiner-store-merging=false"
"""LLVM merges stores of doubles wrongly on x86: evidence/pages/speed.md."""
SUMS_OF_XLA = "--xla_cpu_experimental_ynn_fusion_type=-reduce"
"""YNNPACK, to which XLA takes sums, gets some wrong: evidence/pages/speed.md."""
SUMS_OF_YNNPACK = (0, 10, 2)
"""First version of jaxlib whose sums are YNNPACK's."""

SAME_AGAIN = "--xla_gpu_deterministic_ops=true"
"""Repeats of a run on a GPU are equal to the bit: XLA then takes the first of its
programs that will do, not whichever was fastest when it was tried. To switch the choice
off (`xla_gpu_autotune_level=0`) as well makes convolutions 38 times as slow:
evidence/pages/speed.md."""
GPUS = (Path("/dev/nvidiactl"), Path("/dev/kfd"), Path("/dev/dxg"))
"""Devices by which Linux has GPUs of NVIDIA, of AMD, and of Windows around it."""

MAPPINGS = Path("/proc/self/maps")
"""The memory mappings of this process, one a line, on Linux."""
MOST_MAPPINGS = Path("/proc/sys/vm/max_map_count")
"""The most mappings that a process may have."""


def before_import() -> None:
    """Sets XLA's options: one thread per run on CPU, and correct programs.

    Call it before JAX computes anything; child processes inherit it. The user's own
    values of these options stay.
    """
    os.environ.setdefault(NUM_THREADS, "1")
    os.environ["XLA_FLAGS"] = with_flags(os.environ.get("XLA_FLAGS", ""))
    if has_gpu():  # or the first process of a study takes most of its memory
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def has_gpu() -> bool:
    """Returns whether Linux has a GPU here, before JAX searches for one."""
    return any(path.exists() for path in GPUS)


def with_flags(flags: str) -> str:
    """Returns flags of XLA with those that runs need, unless they are set."""
    needed = {
        "xla_cpu_multi_thread_eigen": ONE_THREAD,
        "combiner-store-merging": STORES_APART,
    }
    if _version() >= SUMS_OF_YNNPACK:  # others end at a flag that they do not know
        needed["xla_cpu_experimental_ynn_fusion_type"] = SUMS_OF_XLA
    if has_gpu():  # all versions that we admit know these
        needed["xla_gpu_deterministic_ops"] = SAME_AGAIN
    missing = [flag for name, flag in needed.items() if name not in flags]
    return " ".join([*flags.split(), *missing])


def use_cores(number: int) -> None:
    """Makes each of some cores a device of JAX, for runs that are executed in waves.

    Does nothing where JAX has its devices already.
    """
    import jax

    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", number)


def products() -> str:
    """Returns the type in which numbers of float32 are multiplied by matrices.

    JAX's setting, or its default on this device: TF32, which has 11 bits of 24, on GPUs
    of NVIDIA since Ampere, and bfloat16 on TPUs.
    """
    import jax

    settings: Any = jax.config
    chosen = settings.jax_default_matmul_precision
    if chosen not in (None, "default"):
        return str(chosen)
    here = jax.devices()[0]
    if here.platform == "tpu":
        return "bfloat16"
    major = str(getattr(here, "compute_capability", "")).split(".")[0]
    return "tensorfloat32" if major.isdecimal() and int(major) >= 8 else "float32"


def _version() -> tuple[int, ...]:
    """Returns the version of jaxlib, in numbers."""
    parts = version("jaxlib").split(".")
    return tuple(int(part) for part in parts if part.isdecimal())


def use_cache() -> None:
    """Keeps compiled programs between processes, where a folder can be written.

    A folder that the user has named to JAX stays. The oldest programs go once they are
    too many.
    """
    import jax

    settings: Any = jax.config
    folder = cache.programs()
    if folder is None or os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return
    if settings.jax_compilation_cache_dir == str(folder):
        return
    cache.shorten()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # the programs are compiled again, which only costs time
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # A study has some 25 small programs, which take a second in each process.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def mappings() -> int:
    """Returns the memory mappings of this process; 0 where the system has no list."""
    try:
        with MAPPINGS.open("rb") as lines:
            return sum(1 for _ in lines)
    except OSError:
        return 0


def release_programs() -> bool:
    """Forgets compiled programs where they take half of the mappings that Linux allows.

    Each program takes some (about 75 with all its parts), and at the limit, 65,530 by
    default, XLA crashes: a process that executes many programs, one after the other,
    must forget those that it no longer needs. A forgotten program is compiled again, or
    read from the cache.

    Returns:
        Whether they were forgotten.
    """
    import gc

    import jax

    try:
        most = int(MOST_MAPPINGS.read_text())
    except (OSError, ValueError):
        return False
    if mappings() <= most // 2:
        return False
    jax.clear_caches()
    gc.collect()
    return True
