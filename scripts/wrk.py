"""Runs `wrk`, and gives what it measured."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = """
local n, paths, method, body = 0, {paths}, "{method}", {body}
local part = 0
function setup(thread) thread:set("part", part) part = part + 7919 end
request = function()
  n = n + 1
  local path = string.gsub("{path}", "NUMBER", tostring((n * 7 + part) % paths))
  return wrk.format(method, path, nil, body)
end
done = function(summary, latency)
  io.write(string.format(
    '{{"requests":%d,"microseconds":%d,"bad":%d,"failed":%d,"p50":%.0f,"p99":%.0f,"max":%.0f}}\\n',
    summary.requests, summary.duration, summary.errors.status,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout,
    latency:percentile(50), latency:percentile(99), latency.max))
end
"""


class Wrk:
    """A run that has begun. NUMBER in the path is a number below `paths`; times are in microseconds."""

    def __init__(self, url, path, seconds, connections, headers=(), method="GET", body=None, paths=1000, before=()):
        self.folder = tempfile.TemporaryDirectory()
        script = Path(self.folder.name, "requests.lua")
        quoted = "nil" if body is None else json.dumps(body)
        script.write_text(SCRIPT.format(path=path, method=method, body=quoted, paths=paths))
        command = [*before, "wrk", "-t", "1", "-c", str(connections), "-d", f"{seconds}s", "--timeout", "10s", "-s", script]
        for header in headers:
            command += ["-H", header]
        self.process = subprocess.Popen([str(c) for c in [*command, url]], stdout=subprocess.PIPE, text=True)

    def result(self):
        output = self.process.communicate()[0]
        line = next((line for line in output.splitlines() if line.startswith('{"requests"')), None)
        if self.process.returncode or line is None:
            sys.exit(f"wrk failed: {output}")
        found = json.loads(line)
        found["per_second"] = found["requests"] / found["microseconds"] * 1e6
        return found
