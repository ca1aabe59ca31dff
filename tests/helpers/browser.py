"""A real browser for tests: Chromium without a window, controlled through a pipe."""

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
TIMEOUT = 60


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
        self.command_count = 0
        self.buffer = b""
        self.session = None
        target = self.send_command("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send_command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self.send_command(f"{part}.enable")

    def send_command(self, method: str, **params: object) -> dict:
        """Send a command and wait for its answer."""
        self.command_count += 1
        message = {"id": self.command_count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.inbox, json.dumps(message).encode() + b"\0")
        while True:
            reply = self.read_message()
            if reply.get("id") == self.command_count:
                assert "error" not in reply, reply
                return reply["result"]

    def read_message(self) -> dict:
        """The next message of the browser. Events are stored."""
        end = time.monotonic() + TIMEOUT
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.outbox], [], [], max(0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            data = os.read(self.outbox, 1 << 20)
            assert data, "the browser has gone"
            self.buffer += data
        text, _, self.buffer = self.buffer.partition(b"\0")
        message = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, path: Path, width: int, height: int = 900) -> None:
        """Load a file in a window of this size. Below 600 pixels the window is that of a phone."""
        phone = width < 600
        self.send_command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )
        self.events.clear()
        self.send_command("Page.navigate", url=path.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.read_message()

    def evaluate(self, code: str) -> object:
        """The value of a JavaScript expression."""
        reply = self.send_command("Runtime.evaluate", expression=code, returnByValue=True)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    def send_mouse_event(self, kind: str, x: float, y: float) -> None:
        """Move the mouse, or press (`mousePressed`) and release (`mouseReleased`) its left button."""
        self.send_command("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def list_requests(self) -> list[str]:
        """Addresses that the page requested, except its own."""
        sent = [event["params"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [request["request"]["url"] for request in sent[1:]]

    def list_messages(self) -> list[dict]:
        """Messages and errors of the console."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event["params"] for event in self.events if event["method"] in kinds]

    def save_screenshot(self, path: Path) -> None:
        """The whole page as a PNG file."""
        data = self.send_command("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def save_pdf(self, path: Path) -> None:
        """The page on paper, as a PDF file."""
        path.write_bytes(base64.b64decode(self.send_command("Page.printToPDF", printBackground=True)["data"]))

    def close(self) -> None:
        """End this browser only."""
        os.close(self.inbox)
        os.close(self.outbox)
        self.process.terminate()
        self.process.wait(timeout=TIMEOUT)
