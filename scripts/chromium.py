"""A tab of a headless Chromium, by the DevTools protocol over pipes."""

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import count


class Chromium:
    """One tab. Everything that is waited for has to come within `patience` seconds."""

    def __init__(self, patience=30):
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if not program:
            sys.exit("chromium is not installed; scripts/test installs it")
        self.patience, self.numbers, self.events, self.rest = patience, count(1), [], b""
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # It reads from its descriptor 3 and writes to 4.
        theirs_in, self.write = os.pipe()
        self.read, theirs_out = os.pipe()

        def descriptors():
            copies = os.dup(theirs_in), os.dup(theirs_out)
            for copy, place in zip(copies, (3, 4)):
                os.dup2(copy, place)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
             f"--user-data-dir={self.folder.name}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=descriptors, close_fds=False)
        os.close(theirs_in)
        os.close(theirs_out)
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def call(self, method, **params):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        answer = self.wait(lambda m: m.get("id") == number, method)
        if "error" in answer:
            sys.exit(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def wait(self, fits, what):
        """The next message that fits; events that do not are kept."""
        until = time.monotonic() + self.patience
        while True:
            for at, event in enumerate(self.events):
                if fits(event):
                    return self.events.pop(at)
            while b"\0" not in self.rest:
                left = until - time.monotonic()
                if left <= 0 or not select.select([self.read], [], [], left)[0]:
                    sys.exit(f"chromium: no {what} within {self.patience} s")
                more = os.read(self.read, 1 << 20)
                if not more:
                    sys.exit("chromium ended")
                self.rest += more
            message, self.rest = self.rest.split(b"\0", 1)
            self.events.append(json.loads(message))

    def run(self, script):
        """What a script in the page comes to."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            sys.exit(f"{script[:200]}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def loads(self, act):
        """Does something that leads to another page, and waits until that is there."""
        self.events = [event for event in self.events if event.get("method") != "Page.loadEventFired"]
        act()
        self.wait(lambda m: m.get("method") == "Page.loadEventFired", "page")

    def go(self, url):
        self.loads(lambda: self.call("Page.navigate", url=url))

    def click(self, selector):
        self.loads(lambda: self.press(selector))

    def press(self, selector):
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def fill(self, selector, text):
        self.run(f"document.querySelector({json.dumps(selector)}).value = {json.dumps(text)}")

    def text(self, selector="main"):
        return self.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def texts(self, selector):
        return self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.innerText.trim())")

    def looks(self, width, dark):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()
