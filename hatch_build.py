"""Compile the hot loops while the package is built. Without a compiler it is built too, and computes in torch."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("polyseme", "kernels")
ARM, INTEL = ("aarch64", "arm64"), ("x86_64", "amd64")
# Best last: polyseme/kernels/native.py takes the best that the processor supports.
VARIANTS = {
    "neon": (ARM, "-march=armv8-a"),
    "dotprod": (ARM, "-march=armv8.2-a+dotprod"),
    "avx2": (INTEL, "-mavx2 -mfma"),
    "avx512": (INTEL, "-mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma"),
    "avx512vnni": (INTEL, "-mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma"),
}
# GCC's first scheduling pass shuffles the inner loops until registers run out: an eighth slower.
FLAGS = "-O3 -std=gnu11 -fPIC -shared -fvisibility=hidden -ffp-contract=fast"
GCC_FLAGS = "-fno-schedule-insns"


class CompileKernels(BuildHookInterface):
    """Makes `_native_*.so`, one for each kind of processor that this machine's compiler can serve."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; what could be made goes into the wheel."""
        made = [file for name in VARIANTS if (file := self._compile(name))]
        if made:
            build_data["artifacts"] += [str(file) for file in made]
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"

    def _compile(self, name: str) -> Path | None:
        machines, flags = VARIANTS[name]
        compiler = os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), None)
        if platform.machine().lower() not in machines or not compiler or os.environ.get("POLYSEME_PURE"):
            return None
        made = FOLDER / f"_native_{name}.so"
        target = Path(self.root, made)
        part = target.with_suffix(".part")  # whole or not at all: somebody may have the old one open
        command = [*shlex.split(compiler), *FLAGS.split(), *flags.split(), "-o", str(part)]
        command += [str(Path(self.root, FOLDER, "native.c")), "-lm"]
        for extra in (GCC_FLAGS.split(), []):  # other compilers do not know it
            done = subprocess.run([*command, *extra], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                part.replace(target)
                return made
        self.app.display_warning(f"no compiled kernels for {name}: {(done.stderr.splitlines() or ['?'])[0]}")
        return None
