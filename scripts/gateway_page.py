#!/usr/bin/env python3
"""The pages of a gateway in a browser: signs in, finds, filters, sorts, opens and exports records, as a person does, and
compares with what the API says; looks for barriers on every page with axe-core, wide and narrow, light and dark.

    scripts/gateway_page.py [--no-build] [--pictures FOLDER]

Needs chromium and npm, which fetches axe-core into target/node. Exit 1 where something is not as it should be.
"""

import argparse
import base64
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

from built import ROOT, build, need
from chromium import Chromium
from gateway import Client, Installation

AXE = "4.14.1"
FOUND = "age>=60 and name~Bob"


def axe():
    """The text of axe-core."""
    folder = ROOT / "target/node"
    script = folder / "node_modules/axe-core/axe.min.js"
    if not script.exists():
        need("npm")
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--silent", "--no-save", "--prefix", folder, f"axe-core@{AXE}"]
        subprocess.run(list(map(str, command)), check=True, stdout=sys.stderr)
    return script.read_text()


class Trial:
    def __init__(self, browser, pictures):
        self.browser, self.pictures, self.axe = browser, pictures, axe()
        self.looked, self.wrong = 0, []

    def expect(self, is_so, what):
        if not is_so:
            self.wrong.append(what)
            print(f"WRONG: {what}", flush=True)

    def look(self, name):
        """What axe-core says of the page that is shown."""
        for width in (1280, 390):
            for dark in (False, True):
                self.browser.looks(width, dark)
                self.browser.run(self.axe + "; 0")
                found = self.browser.run("axe.run().then(r => r.violations.map(v => [v.id, v.help, v.nodes.map(n => n.html)]))")
                at = f"{name}, {width} pixels, {'dark' if dark else 'light'}"
                for rule, help, nodes in found:
                    self.expect(False, f"{at}: {rule}: {help}: {nodes[:3]}")
                wide = self.browser.run("document.documentElement.scrollWidth > document.documentElement.clientWidth")
                self.expect(not wide, f"{at}: it is wider than the window")
                self.looked += 1
                if self.pictures:
                    data = self.browser.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
                    file = f"{name}-{width}-{'dark' if dark else 'light'}.png".replace(" ", "-")
                    (self.pictures / file).write_bytes(base64.b64decode(data))
        self.browser.looks(1280, False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-build", action="store_true", help="use the program that is there")
    parser.add_argument("--pictures", type=Path, help="keep pictures of the pages in this folder")
    args = parser.parse_args()
    if not args.no_build:
        build()
    if args.pictures:
        args.pictures.mkdir(parents=True, exist_ok=True)
    with Installation({"one": "sqlite:t.db"}) as at, Chromium() as browser, tempfile.TemporaryDirectory() as downloads:
        key = at.tenant("austin")
        gateway = at.serve()
        client = Client(gateway.address, key)
        lines = "".join(
            json.dumps({"id": f"bob{n}", "doc": {"name": f"Bob {n}", "age": n % 90, "tags": ["a", {"b": n}]}}) + "\n"
            for n in range(300))
        if client.ask("POST", "/v1/docs/people:bulk", lines)[0] != 200:
            sys.exit("the records could not be written")
        each = client.ask("GET", f"/v1/docs/people:each?where={quote(FOUND)}")[2]
        wanted = {item["id"]: item["doc"] for item in map(json.loads, each.splitlines())}
        trial = Trial(browser, args.pictures)
        url = f"http://{gateway.address}"

        browser.go(url)
        trial.look("sign in")
        browser.fill("#key", key[:-1] + ("A" if key[-1] != "A" else "B"))
        browser.click("form.sheet button")
        trial.expect("not valid" in browser.text(), "a wrong key is told")
        trial.look("wrong key")
        browser.fill("#key", key)
        browser.click("form.sheet button")
        trial.expect("300 records" in browser.text(), f"the count of the collection: {browser.text()!r}")
        trial.look("collections")

        browser.click("ul.index a")
        most = browser.run("document.querySelector('#limit').value")
        trial.expect(len(browser.texts("tbody tr")) == int(most), f"a page has {most} records")
        browser.click("a.next")
        trial.expect(browser.texts("tbody th")[0] not in ("bob0", ""), "the next page goes on")
        trial.look("second page")
        browser.fill("#where", FOUND)
        browser.fill("#sort", "-age,name")
        browser.fill("#limit", "200")
        browser.click("form.ask button")
        ids = browser.texts("tbody th")
        trial.expect(sorted(ids) == sorted(wanted), f"{len(ids)} records fit, not {len(wanted)}")
        ages = [wanted[one]["age"] for one in ids if one in wanted]
        trial.expect(ages == sorted(ages, reverse=True), "the oldest come first")
        trial.look("found")

        browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=downloads, eventsEnabled=True)
        browser.run("document.querySelector('#format').value = 'jsonl'")
        browser.press("form.export button")
        browser.wait(lambda m: m.get("params", {}).get("state") == "completed", "download")
        files = list(Path(downloads).iterdir())
        rows = [json.loads(line) for line in files[0].read_text().splitlines()] if files else []
        exported = {row.pop("_key"): row for row in rows}
        trial.expect(exported == wanted, f"{len(exported)} records were exported, not {len(wanted)}")

        first = ids[0]
        browser.click("tbody th a")
        trial.expect(f'"{wanted[first]["name"]}"' in browser.text(), "the record that was opened")
        trial.look("record")
        browser.go(f"{url}/c/people?where=age%3E%3D")
        trial.expect(browser.run("!!document.querySelector('[role=alert]')"), "a wrong condition is told")
        trial.look("wrong condition")
        browser.go(f"{url}/c/people/nobody")
        trial.look("no record")
        browser.go(f"{url}/api")
        trial.expect(len(browser.texts("main section")) > 9, "every operation has its section")
        trial.look("api")
        browser.go(f"http://{gateway.operators}/")
        trial.expect(browser.texts("tbody th") == ["austin"], "the tenants of operators")
        trial.look("operators")
        browser.go(url)
        browser.click(".who button")
        trial.expect("Sign in" in browser.text(), "signed out")
        print(f"{trial.looked} looks at pages; {len(trial.wrong)} wrong")
        sys.exit(bool(trial.wrong))


if __name__ == "__main__":
    main()
