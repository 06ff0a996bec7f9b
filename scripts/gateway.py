"""What the scripts about the gateway share: an installation in a folder of its own, gateways that serve it, clients."""

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from built import STEELYARD


def before_others():
    """For root: what is started from here on goes before what else runs on the machine, which is then another's group."""
    if os.geteuid() == 0:
        try:
            os.setsid()
        except OSError:
            pass
        try:
            Path("/proc/self/autogroup").write_text("-15")
        except OSError:
            os.nice(-15)


class Installation:
    """A configuration and its secret in a temporary folder."""

    def __init__(self, shards, lease=2.0, limits=None, catalog="sqlite:catalog.db", folder=None):
        self.kept = folder or tempfile.TemporaryDirectory()
        self.path = Path(folder or self.kept.name)
        secret = self.path / "secret"
        secret.write_text("0123456789abcdef0123456789abcdef")
        secret.chmod(0o600)
        settings = {"requests_per_second": 1e6, **(limits or {})}
        lines = [
            f'catalog = "{catalog}"', 'secret_file = "secret"', f"lease_seconds = {lease}",
            "[listen]", 'address = "127.0.0.1:0"', 'operators = "127.0.0.1:0"', "[limits]",
            *(f"{name} = {value}" for name, value in settings.items()),
        ]
        for name, url in shards.items():
            lines += [f"[shard.{name}]", f'url = "{url}"']
        (self.path / "steelyard.toml").write_text("\n".join(lines) + "\n")
        self.gateways = []

    def run(self, *words, may_fail=False):
        """What a command prints on standard output."""
        command = [str(STEELYARD), *map(str, words)]
        done = subprocess.run(command, cwd=self.path, capture_output=True, text=True)
        if done.returncode and not may_fail:
            sys.exit(f"{' '.join(command)} failed: {done.stdout}{done.stderr}")
        return done.stdout.strip() if done.returncode == 0 else None

    def tenant(self, name, *words):
        """Adds a tenant, and gives its key."""
        return self.run("tenant", "add", name, *words)

    def serve(self, before=(), log="off"):
        gateway = Gateway(self, before, log)
        self.gateways.append(gateway)
        return gateway

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for gateway in self.gateways:
            gateway.kill()


class Gateway:
    """A gateway as a process. `before` is what its command begins with: taskset, nice."""

    def __init__(self, installation, before, log):
        command = [*map(str, before), str(STEELYARD), "serve", "--config", "steelyard.toml", "--log", log]
        self.process = subprocess.Popen(command, cwd=installation.path, stderr=subprocess.PIPE, text=True)
        self.address, self.operators, said = None, None, []
        while self.operators is None:
            line = self.process.stderr.readline()
            if not line:
                sys.exit(f"the gateway did not start: {''.join(said)}")
            said.append(line)
            if line.startswith("serving on http://"):
                self.address = line.split("//")[1].strip()
            if line.startswith("metrics on http://"):
                self.operators = line.split("//")[1].split("/")[0]
        self.log = []
        threading.Thread(target=self.drain, daemon=True).start()

    def drain(self):
        for line in self.process.stderr:
            self.log.append(line)

    @property
    def pid(self):
        return self.process.pid

    def signal(self, which):
        self.process.send_signal(which)

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()

    def stop(self, within=40):
        """Ends it as an operator does; gives the seconds that took."""
        begun = time.monotonic()
        self.process.terminate()
        self.process.wait(within)
        return time.monotonic() - begun


class Client:
    """One connection that is kept, with a key."""

    def __init__(self, address, key, timeout=60):
        self.address, self.timeout = address, timeout
        self.headers = {"Authorization": f"Bearer {key}"}
        self.connection = None

    def ask(self, method, path, body=None, **headers):
        """Status, headers and body; None where there was no answer."""
        host, port = self.address.split(":")
        try:
            if self.connection is None:
                self.connection = http.client.HTTPConnection(host, int(port), timeout=self.timeout)
                self.connection.connect()
                self.connection.sock.setsockopt(6, 1, 1)  # TCP_NODELAY
            more = {name.replace("_", "-"): value for name, value in headers.items()}
            self.connection.request(method, path, body, {**self.headers, **more})
            answer = self.connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            return None

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


def documents(address, key, collection):
    """All documents of a collection, by their ids, as `:each` streams them."""
    status, _, body = Client(address, key, 600).ask("GET", f"/v1/docs/{collection}:each") or (0, None, b"")
    if status != 200:
        sys.exit(f"{collection}:each is answered {status}: {body[:300]}")
    items = [json.loads(line) for line in body.splitlines()]
    found = {item["id"]: item["doc"] for item in items}
    return found, len(items) - len(found)


def settled(address, key, path="/v1/docs", within=60):
    """Waits until a tenant is served."""
    client, until = Client(address, key), time.monotonic() + within
    while (answer := client.ask("GET", path)) is None or answer[0] >= 500:
        if time.monotonic() > until:
            sys.exit(f"{path} is not answered: {answer}")
        time.sleep(0.01)


def status(pid, name):
    """A line of /proc/PID/status, in kB where it has a unit."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0


def rss(pid):
    """Resident memory of its own, in MB: now, and the most there was."""
    return status(pid, "VmRSS") / 1024, status(pid, "VmHWM") / 1024


def files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def cpu(*pids):
    """Seconds of processor time that processes have used, with those of the children they waited for."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))
    return total / ticks


def tree(pid):
    """A process and all that it started."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += tree(int(child))
    return found


def percentile(values, part):
    """The value that this part of all is not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else float("nan")
