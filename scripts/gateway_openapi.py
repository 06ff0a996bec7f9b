#!/usr/bin/env python3
"""Tries the gateway against its own description: schemathesis sends what the OpenAPI of `serve --print-openapi` allows, and
what it forbids, and looks whether the answers are those that it says.

    scripts/gateway_openapi.py [--examples 200] [--seed 1] [--folder target/peers] [-- more options of schemathesis]

Schemathesis (PyPI) is installed into --folder. All its checks are on. Of one a setting is changed: a condition, an order, a
cursor and an ETag are small languages of their own, which a schema can only call text, so a text that is none may be
refused (400), a condition that does not hold too (412), and a media type (406, 415). The collections are made beforehand,
and a limit of requests a second is not tried here. Exit 1 where a check fails.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from built import ROOT, build
from gateway import Client, Installation

CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "304", "400", "401", "403", "404", "406", "409", "412", "422"]
"""
# Lines of JSON, which schemathesis does not know: a value a line.
HOOKS = """
import json
import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(ctx, value):
    return json.dumps(value, default=str).encode() + b"\\n"


def known(name):
    @schemathesis.serializer(name)
    def packed(ctx, value):
        # The formats are tried by tests of their own; here they carry any bytes.
        return value if isinstance(value, bytes) else json.dumps(value, default=str).encode()


for name in ("application/vnd.msgpack", "application/cbor", "application/bson"):
    known(name)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=ROOT / "target/peers")
    parser.add_argument("--no-build", action="store_true", help="use the program that is there")
    parser.add_argument("more", nargs="*")
    args = parser.parse_args()
    if not args.no_build:
        build()
    libraries = args.folder.resolve() / "schemathesis"
    if not libraries.is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", libraries, "schemathesis"]
        if subprocess.run(command).returncode:
            sys.exit("not installed: schemathesis (pip could not install it)")
    with Installation({"one": "sqlite:t.db"}) as at:
        key = at.tenant("a")
        gateway = at.serve()
        (at.path / "openapi.json").write_text(at.run("serve", "--print-openapi"))
        (at.path / "schemathesis.toml").write_text(CONFIG)
        (at.path / "hooks.py").write_text(HOOKS)
        lines = "".join(json.dumps({"id": f"x{n}", "doc": {"n": n}}) + "\n" for n in range(20))
        for collection in ("people", "A", "0"):
            Client(gateway.address, key).ask("POST", f"/v1/docs/{collection}:bulk", lines)
        command = [
            sys.executable, "-m", "schemathesis.cli", "run", "openapi.json", "--url", f"http://{gateway.address}",
            "-H", f"Authorization: Bearer {key}", "--max-examples", args.examples, "--seed", args.seed, "--checks", "all",
            "--continue-on-failure", "--suppress-health-check", "all", *args.more,
        ]
        environment = {**os.environ, "PYTHONPATH": f"{libraries}:{at.path}", "SCHEMATHESIS_HOOKS": "hooks"}
        done = subprocess.run([str(word) for word in command], cwd=at.path, env=environment)
        if gateway.process.poll() is not None:
            sys.exit("the gateway ended")
        gateway.stop()
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
