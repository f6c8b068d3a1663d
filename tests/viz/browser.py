"""A headless Chromium, spoken to through pipes: no driver and no further package is needed."""

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--no-first-run", "--hide-scrollbars", "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)  # fmt: skip

#: The protocol is spoken on descriptors 3 and 4.
LAUNCH = """import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])"""


def find_browser():
    """The program, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def _move(fd):
    """The same descriptor with a number that is not in the way."""
    import fcntl

    moved = fcntl.fcntl(fd, fcntl.F_DUPFD, 10)
    os.close(fd)
    return moved


#: Addresses that are not of a network.
LOCAL = ("file:", "data:", "about:")


class Browser:
    """One page of a browser. What the page logs or throws is collected in ``problems``.

    So are requests to addresses that do not begin with one of ``allowed``.
    """

    def __init__(self, profile, timeout=60.0, allowed=LOCAL):
        self.allowed = tuple(allowed)
        theirs, self._out = os.pipe()
        self._in, answers = os.pipe()
        high = [_move(fd) for fd in (theirs, answers)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *map(str, high), find_browser(), *OPTIONS,
             f"--user-data-dir={profile}", "about:blank"],
            pass_fds=high,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for fd in high:
            os.close(fd)
        self.timeout, self._rest, self._ids = timeout, b"", itertools.count(1)
        self.problems = []
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        """End the browser."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._in)
        os.close(self._out)

    def call(self, method, **params):
        """Ask the browser and wait for its answer."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        answer = self._wait(lambda m: m.get("id") == number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _wait(self, wanted):
        end = time.monotonic() + self.timeout
        while True:
            while b"\0" not in self._rest:
                left = end - time.monotonic()
                if left <= 0 or not select.select([self._in], [], [], left)[0]:
                    raise TimeoutError("the browser did not answer")
                part = os.read(self._in, 1 << 16)
                if not part:
                    raise RuntimeError("the browser has ended")
                self._rest += part
            text, _, self._rest = self._rest.partition(b"\0")
            message = json.loads(text)
            self._note(message)
            if wanted(message):
                return message

    def _note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(params["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.problems.append(params["args"])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(params["entry"])
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith(self.allowed):
                self.problems.append(url)

    def open(self, url, width=1100, height=900, dark=False, mobile=False):
        """Load a page in a window of some size."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=mobile)  # fmt: skip
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[feature])
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        end = time.monotonic() + self.timeout
        while self.eval("location.href + document.readyState") != url + "complete":
            assert time.monotonic() < end, f"{url} does not load"
            time.sleep(0.02)

    def eval(self, script):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def press(self, key, code=0, text=""):
        """A key."""
        for kind in ("keyDown", "keyUp"):
            extra = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode=code, **extra)  # fmt: skip

    def screenshot(self):
        """All of the page as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        image = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(image["data"])
