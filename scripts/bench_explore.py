"""Measure the explorer in headless Chromium: first paint, and how long clicks take to be answered.

A click is answered when what it asked for has been drawn (not a sentence that it is on its way); its time is taken in
the page, from the click to the frame after the drawing.  The machine is warm: the server runs, compiled code is loaded
and the strategy read; the lines that are walked are new to it each time but the last.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-quic", "--no-first-run",
]  # fmt: skip
LOADS = 12
BARS = {  # milliseconds that the median is to stay under
    "first paint": 2000,
    "first grid": None,
    "next action": 200,
    "one action back": 200,
    "choose a hand": 200,
    "open a tab": 200,
}
LINES = tuple(
    tuple(line.split())
    for line in (
        "7 raise accept 7 raise accept",
        "5 6 raise accept 8",
        "6 6 raise accept",
        "8 A 3 5",
        "4 raise accept 8 7",
        "3 7 7 raise",
        "8 8 raise accept 2",
    )
)
HANDS = ("8 8 7", "A 2 3", "7 7 7", "5 6 8", "A 8 8", "2 2 4", "6 7 8", "3 3 3")

WATCH = """([press, box, done]) => new Promise((resolve, reject) => {
  const start = performance.now();
  const seen = () => { const e = document.querySelector(done); return e !== null && e.getClientRects().length > 0; };
  const watcher = new MutationObserver(() => {
    if (!seen()) return;
    watcher.disconnect();
    requestAnimationFrame(() => resolve(performance.now() - start));
  });
  watcher.observe(document.querySelector(box), {childList: true, subtree: true, attributes: box === "#app"});
  setTimeout(() => reject(new Error("no answer to " + press)), 30000);
  [...document.querySelectorAll(press)].find(e => e.getClientRects().length).dispatchEvent(
    new MouseEvent("click", {bubbles: true, cancelable: true}));
})"""


@contextmanager
def server() -> Iterator[str]:
    """The address of an explorer that runs."""
    command = [sys.executable, "-m", "solver", "explore", "--port", "0", "--no-open"]
    environment, quiet = {**os.environ, "LC_ALL": "C"}, subprocess.DEVNULL
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=quiet, text=True, env=environment) as run:
        try:
            assert run.stdout is not None
            yield run.stdout.readline().strip()
        finally:
            run.terminate()


def explore() -> dict[str, Any]:
    """Milliseconds: medians, 95th percentiles, how many, and what the medians should stay under."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or "/usr/bin/chromium"
    found: dict[str, list[float]] = {name: [] for name in BARS}
    with server() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        grid = "#panel-strategy svg.grid .cell"
        page.goto(address)
        page.wait_for_selector(grid, timeout=60_000)
        page.wait_for_timeout(1000)
        for _ in range(LOADS):
            page.goto(address)
            page.wait_for_selector(grid, timeout=60_000)
            found["first grid"].append(page.evaluate("performance.now()"))
            paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            found["first paint"].append(page.evaluate(paint))
        page.wait_for_timeout(3000)  # what is done while the reader looks
        boxes = "#panel-strategy .grids", "#panel-strategy .grids svg.grid"
        for line in LINES:
            for action in line:
                press = f'#panel-strategy [data-do=act][data-arg="{action}"]'
                found["next action"].append(page.evaluate(WATCH, [press, *boxes]))
                page.wait_for_timeout(150)
            for _ in line:
                found["one action back"].append(page.evaluate(WATCH, ["#panel-strategy [data-do=back]", *boxes]))
                page.wait_for_timeout(150)
        for hand in HANDS:
            held = " ".join(sorted(hand.split(), key="A2345678".index))
            press = f'#panel-strategy .cell[data-arg="{held}"]'
            done = f'#panel-strategy .advice[data-hand="{held}"]'
            found["choose a hand"].append(page.evaluate(WATCH, [press, "#panel-strategy .detail", done]))
            page.wait_for_timeout(150)
        for _ in range(3):
            for tab, shown in (("match", "svg.map"), ("review", "textarea"), ("strategy", "svg.grid")):
                press = f'nav [data-arg="{tab}"]'
                found["open a tab"].append(page.evaluate(WATCH, [press, "#app", f"#panel-{tab} {shown}"]))
                page.wait_for_timeout(200)
        browser.close()
    return summary(found, BARS)


def summary(found: Mapping[str, list[float]], bars: Mapping[str, float | None]) -> dict[str, Any]:
    """Medians and 95th percentiles of latencies in milliseconds, how many there are, and what the medians should stay
    under."""
    return {
        name: {
            "median_ms": statistics.median(times),
            "p95_ms": float(np.percentile(times, 95)),
            "number": len(times),
            "bar_ms": bars[name],
        }
        for name, times in found.items()
    }


if __name__ == "__main__":
    print(json.dumps(explore(), indent=1))
