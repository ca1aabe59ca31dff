"""A real browser for tests: Chromium without a window, told what to do through a pipe."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PATIENCE = 60


class Browser:
    """One page in Chromium. `events` holds all that the browser reported."""

    def __init__(self, folder: Path) -> None:
        to_browser, self.inbox = os.pipe()
        self.outbox, from_browser = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        flags += ["--disable-background-networking", "--disable-component-update", "--disable-extensions"]
        flags += ["--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"]
        # The browser reads commands from its third and writes answers to its fourth file.
        pipes = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self.process = subprocess.Popen(
            ["bash", "-c", pipes, "bash", CHROMIUM, *flags],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.events: list[dict] = []
        self.asked = 0
        self.rest = b""
        self.session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{part}.enable")

    def ask(self, method: str, **params: object) -> dict:
        """Send a command and wait for its answer."""
        self.asked += 1
        message = {"id": self.asked, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.inbox, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.hear()
            if answer.get("id") == self.asked:
                assert "error" not in answer, answer
                return answer["result"]

    def hear(self) -> dict:
        """The next message of the browser; events are kept."""
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.outbox], [], [], max(0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            piece = os.read(self.outbox, 1 << 20)
            assert piece, "the browser has gone"
            self.rest += piece
        text, _, self.rest = self.rest.partition(b"\0")
        message = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, path: Path, width: int, height: int = 900) -> None:
        """Load a file in a window of this size; below 600 pixels it is a phone's."""
        phone = width < 600
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.events.clear()
        self.ask("Page.navigate", url=path.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.hear()

    def run(self, code: str) -> object:
        """The value of a JavaScript expression."""
        answer = self.ask("Runtime.evaluate", expression=code, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def mouse(self, kind: str, x: float, y: float) -> None:
        """Move the mouse, or press (`mousePressed`) and release (`mouseReleased`) its left button."""
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def requests(self) -> list[str]:
        """Addresses that the page asked for, but for itself."""
        sent = [event["params"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [request["request"]["url"] for request in sent[1:]]

    def complaints(self) -> list[dict]:
        """What was written to the console, errors and all."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event["params"] for event in self.events if event["method"] in kinds]

    def picture(self, path: Path) -> None:
        """The whole page as a PNG file."""
        data = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def printed(self, path: Path) -> None:
        """The page on paper, as a PDF file."""
        path.write_bytes(base64.b64decode(self.ask("Page.printToPDF", printBackground=True)["data"]))

    def close(self) -> None:
        """End the browser, this one only."""
        os.close(self.inbox)
        os.close(self.outbox)
        self.process.terminate()
        self.process.wait(timeout=PATIENCE)
