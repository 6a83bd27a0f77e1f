"""A real browser for tests: headless Chromium, controlled over its DevTools pipe, with only the standard library."""

import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 60
"""Seconds for one answer; only a browser that hangs takes them."""


class Browser:
    """A running Chromium; `open` shows a page in a window of a given width."""

    def __init__(self):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        child_reads, self._to = os.pipe()
        self._from, child_writes = os.pipe()
        # Chromium reads commands on descriptor 3 and answers on 4
        command = f'exec "$@" 3<&{child_reads} 4>&{child_writes}'
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        options += [
            "--disable-background-networking",
            "--remote-debugging-pipe",
            f"--user-data-dir={self._profile.name}",
        ]
        self._process = subprocess.Popen(
            ["bash", "-c", command, "bash", CHROMIUM, *options, "about:blank"],
            pass_fds=(child_reads, child_writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(child_reads)
        os.close(child_writes)
        self._numbers = itertools.count(1)
        self._buffer = b""
        self.events, self.pages = [], []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.ask("Browser.close")
        except (BrokenPipeError, EOFError):
            self._process.kill()
        self._process.wait(PATIENCE)
        os.close(self._to)
        os.close(self._from)
        self._profile.cleanup()

    def ask(self, method, session=None, **parameters):
        """Send one command and wait for its answer; what else arrives meanwhile is kept in `events`."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def wait_for(self, method):
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._receive())

    def _receive(self):
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0, until - time.monotonic()))
            assert ready, "Chromium does not answer"
            arrived = os.read(self._from, 1 << 20)
            if not arrived:
                raise EOFError("Chromium is gone")
            self._buffer += arrived
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path, width, height=800, *, dark=False):
        """The page at `path`, a file or a URL, in a window of this size, with a preference for light or dark."""
        self.events.clear()
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable", session)
        page = Page(self, session, target)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", session, **size)
        self.ask("Emulation.setTouchEmulationEnabled", session, enabled=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", session, features=[scheme])
        url = path if str(path).startswith("http:") else Path(path).resolve().as_uri()
        self.ask("Page.navigate", session, url=url)
        self.wait_for("Page.loadEventFired")
        self.pages.append(page)
        return page


class Page:
    """A page that is shown."""

    def __init__(self, browser, session, target):
        self._browser, self._session, self._target = browser, session, target

    def value(self, expression):
        """What a JavaScript expression gives in the page."""
        answer = self._browser.ask("Runtime.evaluate", self._session, expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_until(self, expression, patience=PATIENCE):
        """Wait for a JavaScript expression to be true, and return it."""
        until = time.monotonic() + patience
        while not (value := self.value(expression)):
            assert time.monotonic() < until, f"never true: {expression}"
            time.sleep(0.02)
        return value

    def center_of(self, selector):
        """Where the middle of an element is, scrolled into sight, once the page has stopped moving it."""
        box = f"document.querySelector({selector!r}).getBoundingClientRect()"
        self.value(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}})")
        until, before, place = time.monotonic() + PATIENCE, None, None
        while place is None or place != before:
            assert time.monotonic() < until, f"never stops moving: {selector}"
            time.sleep(0.02 if place else 0)  # more than a frame
            before, place = place, self.value(f"[{box}.left + {box}.width / 2, {box}.top + {box}.height / 2]")
        return place

    def mouse(self, kind, x, y, *, pressed=False):
        """A real event of the mouse at a place in the window: `Moved`, `Pressed` or `Released`."""
        buttons = {"button": "left", "buttons": 1, "clickCount": 1} if pressed or kind != "Moved" else {}
        self._browser.ask("Input.dispatchMouseEvent", self._session, type=f"mouse{kind}", x=x, y=y, **buttons)

    def click(self, selector):
        """Move the mouse to the middle of an element and click."""
        x, y = self.center_of(selector)
        for kind in ("Moved", "Pressed", "Released"):
            self.mouse(kind, x, y)

    def drag(self, points):
        """Press the mouse at the first place, move it along the others, let go."""
        self.mouse("Moved", *points[0])
        self.mouse("Pressed", *points[0])
        for point in points[1:]:
            self.mouse("Moved", *point, pressed=True)
        self.mouse("Released", *points[-1])

    def touch(self, points):
        """Put a finger down at the first place, move it along the others, lift it."""
        for kind, point in [("touchStart", points[0]), *(("touchMove", point) for point in points[1:])]:
            place = [{"x": point[0], "y": point[1]}]
            self._browser.ask("Input.dispatchTouchEvent", self._session, type=kind, touchPoints=place)
        self._browser.ask("Input.dispatchTouchEvent", self._session, type="touchEnd", touchPoints=[])

    def key(self, key, *, down=True, up=True):
        """Press a key, let it go, or both."""
        text = {" ": " ", "Enter": "\r"}.get(key, key if len(key) == 1 else "")
        code = {" ": "Space"}.get(key, key)
        virtual = {" ": 32, "Tab": 9, "Enter": 13, "Escape": 27, "Delete": 46, "Home": 36}
        virtual |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        common = {"key": key, "code": code, "windowsVirtualKeyCode": virtual.get(key, 0)}
        if down:
            self._browser.ask("Input.dispatchKeyEvent", self._session, type="keyDown", text=text, **common)
        if up:
            self._browser.ask("Input.dispatchKeyEvent", self._session, type="keyUp", **common)

    @property
    def complaints(self):
        """All that a developer would see in the console: messages, exceptions, rejected requests."""
        self.value("0")  # everything before it has arrived
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [event for event in self._browser.events if event.get("method") in kinds]

    @property
    def cut_labels(self):
        """Texts that leave the chart they belong to: labels that do not fit."""
        return self.value(
            """[...document.querySelectorAll('figure svg text')].filter((text) => {
                const [inner, outer] = [text.getBoundingClientRect(), text.closest('svg').getBoundingClientRect()];
                return inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.bottom > outer.bottom + 1;
            }).map((text) => text.textContent)"""
        )

    @property
    def tables_that_scroll(self):
        """The names of tables that are wider than their boxes, folded ones included."""
        self.value("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
        too_wide = "[...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth)"
        return self.value(f"{too_wide}.map((box) => box.ariaLabel)")

    @property
    def chart_widths(self):
        """For every chart of a report that is shown: its width, and that of the row it stands in."""
        return self.value(
            """[...document.querySelectorAll('figure svg')].filter((svg) => svg.getClientRects().length)
                .map((svg) => [svg.getBoundingClientRect().width, svg.closest('.charts').clientWidth])"""
        )

    @property
    def requests(self):
        """The addresses that were asked for, the page itself the first."""
        self.value("0")
        sent = [event for event in self._browser.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def close(self):
        self._browser.ask("Target.closeTarget", targetId=self._target)
        self._browser.pages.remove(self)
