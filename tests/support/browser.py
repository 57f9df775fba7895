"""A real browser without a window, spoken to over the pipe of its own protocol.

https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome", "microsoft-edge")
PATIENCE = 60


def browser_path() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


MISSING = "" if browser_path() else f"no browser on PATH: none of {', '.join(NAMES)}"


class Browser:
    """`events` holds all that the page did: what it asked for, wrote to the console or threw."""

    def __init__(self, profile: Path) -> None:
        from_us, self._to_browser = os.pipe()
        self._from_browser, to_us = os.pipe()
        options = [
            "--headless=new",
            "--no-sandbox",  # root has none
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
        ]
        # the browser reads commands from 3 and writes answers to 4
        pipes = f'exec "$0" "$@" 3<&{from_us} 4>&{to_us}'
        self._process = subprocess.Popen(
            ["bash", "-c", pipes, str(browser_path()), *options, "about:blank"],
            pass_fds=(from_us, to_us),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(from_us)
        os.close(to_us)
        self._numbers = itertools.count(1)
        self._rest = b""
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._to_browser)
        os.close(self._from_browser)

    def call(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        told = {"id": number, "method": method, "params": parameters}
        if self._session:
            told["sessionId"] = self._session
        os.write(self._to_browser, json.dumps(told).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, page: Path, *, width: int = 1100, dark: bool = False, media: str = "screen") -> None:
        """Show a file; what happened on the page before is forgotten."""
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.call("Page.navigate", url=page.absolute().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())
        self.run("document.readyState")  # what was said until then has come

    def run(self, script: str) -> Any:
        """What an expression of JavaScript is on the page."""
        told = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            raise RuntimeError(told["exceptionDetails"])
        return told["result"].get("value")

    def said(self) -> list[Any]:
        """What the page wrote to the console, and what went wrong on it."""
        methods = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event["params"] for event in self.events if event.get("method") in methods]

    def asked_for(self) -> list[str]:
        """Everything that it requested, itself included."""
        requests = (event for event in self.events if event.get("method") == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in requests]

    def picture(self) -> bytes:
        """The whole page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._from_browser], [], [], PATIENCE)[0]:
                raise TimeoutError(f"the browser said nothing for {PATIENCE} seconds")
            chunk = os.read(self._from_browser, 1 << 20)
            if not chunk:
                raise RuntimeError(f"the browser ended: {self._process.poll()}")
            self._rest += chunk
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)


def _main() -> None:
    """python tests/support/browser.py PAGE.html FOLDER: pictures of a page, to be looked at."""
    page, folder = Path(sys.argv[1]), Path(sys.argv[2])
    ways: dict[str, dict[str, Any]] = {
        "light": {},
        "dark": {"dark": True},
        "narrow": {"width": 400},
        "print": {"width": 794, "media": "print"},
    }
    with Browser(folder / "profile") as browser:
        for name, way in ways.items():
            browser.open(page, **way)
            (folder / f"{page.stem}-{name}.png").write_bytes(browser.picture())
        printed = browser.call("Page.printToPDF", printBackground=True)["data"]
        (folder / f"{page.stem}.pdf").write_bytes(base64.b64decode(printed))


if __name__ == "__main__":
    _main()
