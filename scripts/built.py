"""Builds the programs that the scripts run, and names the Debian packages of programs that are missing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# PROFILE=dist in the environment tries the binary as it is shipped.
PROFILE = os.environ.get("PROFILE", "release")
TARGET = ROOT / "target" / PROFILE
STEELYARD = TARGET / "steelyard"

# The package of each program that a script may need, where the names differ.
PACKAGES = {
    "callgrind_annotate": "valgrind",
    "cc": "gcc",
    "mariadb": "mariadb-client",
    "pgbench": "postgresql",
    "psql": "postgresql-client",
    "redis-benchmark": "redis-tools",
    "script": "bsdutils",
    "taskset": "util-linux",
    "yaz-marcdump": "yaz",
}


def example(name):
    """The path of an example's program."""
    return TARGET / "examples" / name


def build(*examples):
    """Builds `steelyard` and these examples with every store. FEATURES in the environment names the features
    that are enough for the stores that are tried."""
    command = ["cargo", "build", "--quiet", "--locked", "--workspace", "--profile", PROFILE, "--bin", "steelyard"]
    for name in examples:
        command += ["--example", name]
    features = os.environ.get("FEATURES")
    command += ["--no-default-features", "--features", features] if features else ["--all-features"]
    built(command, ROOT)


def built(command, folder):
    """Runs a build. Its messages go to the terminal."""
    need("cargo")
    if subprocess.run(command, cwd=folder).returncode:
        sys.exit(f"{' '.join(command)} failed in {folder}")


def missing(*programs):
    """The programs that are not installed, each with the package that has it; empty if all are there."""
    return ", ".join(
        f"{program} (cargo: https://rustup.rs)" if program == "cargo"
        else f"{program} (apt install {PACKAGES.get(program, program)})"
        for program in map(str, programs) if not shutil.which(program)
    )


def need(*programs):
    """Ends the script if a program is not installed."""
    if absent := missing(*programs):
        sys.exit(f"not installed: {absent}")


def need_module(name, package):
    """Ends the script if Python has no such module."""
    if subprocess.run([sys.executable, "-c", f"import {name}"], stderr=subprocess.DEVNULL).returncode:
        sys.exit(f"not installed: Python's {name} (pip install {package})")
