"""Drives the page of `troupe serve` in a headless Chromium by the W3C's WebDriver protocol:
page_in_browser.py TROUPE [FOLDER FOR PICTURES]. Python's standard library alone.

Prints "all well", or "DID NOT RUN: ..." where there is no browser, or ends with a traceback."""

import base64
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

PATIENCE = 120  # seconds; for a loaded machine, and far more than any step needs


def die_with_me():
    """In a child, before its program starts: nothing is left when this script is killed."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until(what, check, patience=PATIENCE):
    """The first true value of check(); ends the test when there is none in time."""
    end = time.monotonic() + patience
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < end, f"{what} did not come"
        time.sleep(0.05)


class Browser:
    """One window. Answers of the protocol are {"value": ...}."""

    def __init__(self, driver, chromium, profile):
        self.process = subprocess.Popen(
            [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            preexec_fn=die_with_me
        )
        for line in self.process.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                self.base = f"http://127.0.0.1:{found[1]}"
                break
        options = {
            "binary": chromium,
            "args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                     "--hide-scrollbars", "--window-size=1280,1000", f"--user-data-dir={profile}"],
        }
        wanted = {"alwaysMatch": {"goog:chromeOptions": options,
                                  "goog:loggingPrefs": {"browser": "ALL"}}}
        self.session = "/session/" + self.call("POST", "/session", {"capabilities": wanted})[
            "sessionId"]

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(
            self.base + path, data=data, method=method, headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            return json.load(answer)["value"]

    def post(self, path, **body):
        return self.call("POST", self.session + path, body)

    def run(self, script, *args):
        return self.post("/execute/sync", script=script, args=list(args))

    def go(self, url):
        self.post("/url", url=url)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def element(self, selector):
        found = self.post("/element", using="css selector", value=selector)
        return "/element/" + next(iter(found.values()))

    def click(self, selector):
        self.post(self.element(selector) + "/click")

    def type(self, selector, text):
        where = self.element(selector)
        self.post(where + "/clear")
        self.post(where + "/value", text=text)

    def devtools(self, command, **params):
        return self.post("/goog/cdp/execute", cmd=command, params=params)

    def complaints(self):
        """Errors of scripts and of the page's policy since the last look."""
        log = self.post("/se/log", type="browser")
        return [one["message"] for one in log
                if one["level"] == "SEVERE" and one["source"] != "network"]

    def picture(self, file, scheme):
        self.devtools("Emulation.setEmulatedMedia",
                      features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.run("scrollTo(0, 0)")
        # Down to the plan, which `troupe plan` draws as well.
        height = self.run("return Math.floor(document.getElementById('plan')"
                          ".getBoundingClientRect().top + scrollY)")
        self.devtools("Emulation.setDeviceMetricsOverride",
                      width=1240, height=height, deviceScaleFactor=1, mobile=False)
        time.sleep(0.7)  # the next event, and charts at their new size
        shot = self.devtools("Page.captureScreenshot", format="png")["data"]
        self.devtools("Emulation.clearDeviceMetricsOverride")
        pathlib.Path(file).write_bytes(base64.b64decode(shot))

    def close(self):
        self.call("DELETE", self.session)
        self.process.terminate()
        self.process.wait(10)


class Cluster:
    """`troupe serve` of the demo, which starts its nodes again when they are killed."""

    def __init__(self, program, port, folder, *more):
        words = [program, "serve", "--set", f"serve.port={port}"]
        for setting in more:
            words += ["--set", setting]
        self.process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, env={**os.environ, "XDG_RUNTIME_DIR": folder}, preexec_fn=die_with_me
        )
        for line in self.process.stdout:
            if "serving;" in line:
                return
        raise AssertionError("the cluster does not serve")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.stdout.read()
        self.process.wait(PATIENCE)


def complete(url, **wish):
    body = json.dumps(wish).encode()
    with urllib.request.urlopen(url + "v1/completions", data=body, timeout=PATIENCE) as answer:
        return json.load(answer)["choices"][0]["text"]


def overview(url):
    with urllib.request.urlopen(url + "events", timeout=PATIENCE) as stream:
        return json.loads(stream.readline().decode().removeprefix("data: "))


PROMPT = "In the beginning"


def write(browser, tokens, temperature="0"):
    browser.type("#prompt", PROMPT)
    browser.type("#most", str(tokens))
    browser.type("#temperature", temperature)
    browser.click("#run")


def written(browser):
    """The answer so far, without the prompt that it is shown behind."""
    return browser.text("#answer").removeprefix(PROMPT)


def is_done(browser):
    return not browser.run("return document.getElementById('run').disabled")


def see_four_ranks(browser, url):
    browser.go(url)
    until("serving", lambda: browser.text("#state") == "serving")
    ranks = browser.run(
        "return [...document.querySelectorAll('.rank')].map(r => [r.dataset.rank, r.dataset.here])")
    assert ranks == [[str(rank), "yes"] for rank in range(4)], ranks
    stages = browser.run("return document.querySelectorAll('.stage').length")
    assert stages == 2, stages
    until("the plan", lambda: browser.run(
        "const p = document.getElementById('picture'); return p.complete && p.naturalWidth > 300"))
    # Nothing but this server was asked for anything.
    asked = browser.run("return performance.getEntriesByType('resource').map(r => r.name)")
    assert all(name.startswith((url, "blob:" + url, "data:")) for name in asked), asked


def stops_in_time(browser):
    write(browser, 1900, "0.7")
    until("text", lambda: len(written(browser)) > 20)
    browser.click("#stop")
    until("the end", lambda: is_done(browser))
    return browser.text("#told").startswith("stopped")


def stream_and_stop(browser, url):
    expected = complete(url, prompt=PROMPT, max_tokens=200, temperature=0)
    write(browser, 200)
    lengths = set()
    while not is_done(browser):
        lengths.add(len(written(browser)))
    assert written(browser) == expected, (written(browser), expected)
    assert len(lengths) > 3, "it came in one piece"
    # A browser on a busy machine may come too late: the answer takes some seconds.
    until("the stop", lambda: stops_in_time(browser), 3 * PATIENCE)
    until("an idle cluster", lambda: overview(url)["requests"]["running"] == 0)
    assert overview(url)["requests"]["cancelled"] == 1


def lose_a_node(browser, url):
    expected = complete(url, prompt=PROMPT, max_tokens=400, temperature=0)
    write(browser, 400)
    until("text", lambda: len(written(browser)) > 20)
    node = next(one for one in overview(url)["nodes"] if one["name"] == "d")
    os.kill(int(re.search(r"process (\d+)", node["address"])[1]), signal.SIGKILL)
    # The page looks from time to time, and a recovery may be over between two looks.
    until("the loss", lambda: browser.run(
        "return document.querySelector('.rank[data-rank=\"3\"]').dataset.here") == "no"
        or browser.text("#state") == "not serving" or browser.text("#recoveries") == "1")
    until("the recovery", lambda: browser.text("#state") == "serving"
          and browser.text("#recoveries") == "1")
    told = until("the news", lambda: browser.text("#events li .done"))
    assert "node 'd' joined" in told and "serves with 4 ranks" in told, told
    assert "node 'd'" in browser.text("#events li"), browser.text("#events li")
    until("the end", lambda: is_done(browser))
    assert written(browser) == expected, (written(browser), expected)


def colours(browser):
    seen = {}
    for scheme in ("light", "dark"):
        browser.devtools("Emulation.setEmulatedMedia",
                         features=[{"name": "prefers-color-scheme", "value": scheme}])
        seen[scheme] = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert seen["light"] != seen["dark"], seen


def take_pictures(browser, url, folder):
    asked = [subprocess.Popen(
        ["curl", "-sN", url + "v1/completions", "-d", json.dumps(
            {"prompt": "And it came to pass", "max_tokens": 1500, "stream": True,
             "temperature": 0.8, "seed": seed})], stdout=subprocess.DEVNULL) for seed in range(6)]
    write(browser, 160, "0.7")
    time.sleep(9)
    for scheme in ("light", "dark"):
        browser.picture(f"{folder}/page-{scheme}.png", scheme)
    for one in asked:
        one.kill()
        one.wait()


def main():
    program = sys.argv[1]
    pictures = sys.argv[2] if len(sys.argv) > 2 else None
    driver = shutil.which("chromedriver")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not driver or not chromium:
        print("DID NOT RUN: chromium or chromedriver (package chromium-driver) is not here")
        return
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(program, port, folder)
        browser = Browser(driver, chromium, folder + "/profile")
        try:
            see_four_ranks(browser, url)
            stream_and_stop(browser, url)
            lose_a_node(browser, url)
            if pictures:
                take_pictures(browser, url, pictures)
            colours(browser)
            assert browser.complaints() == []
            cluster.stop()
            until("the end", lambda: browser.text("#state") == "no connection")
            cluster = Cluster(program, port, folder)
            until("the server again", lambda: browser.text("#state") == "serving")
            cluster.stop()
            keys = pathlib.Path(folder, "keys")
            keys.write_text("a-key-of-sixteen-letters\n")
            keys.chmod(0o600)
            cluster = Cluster(program, port, folder, f"serve.keys_file=\"{keys}\"")
            until("the question", lambda: browser.text("#state") == "key needed")
            browser.type("#key", "a-key-of-sixteen-letters")
            browser.click("#key-form button")
            until("the server with a key", lambda: browser.text("#state") == "serving")
            assert browser.complaints() == []
        finally:
            browser.close()
            cluster.stop()
    print("all well")


main()
