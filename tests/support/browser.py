"""A real headless Chromium: Debian's, or the one that RANKSCOPE_CHROMIUM names, driven by playwright."""

import contextlib
import json
import os
import shutil

ASKED = os.environ.get("RANKSCOPE_CHROMIUM")
# Never asks anybody on the network for anything.
OPTIONS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]


def executable():
    return (
        ASKED or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    )


def unavailable_reason():
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "needs playwright (tests/requirements.txt)"
    return None if executable() else "needs chromium (make tools)"


@contextlib.contextmanager
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=OPTIONS)
        try:
            yield browser
        finally:
            browser.close()


class Opened:
    """A page, and what it complained about."""

    def __init__(self, browser, address, width=1280, height=900, **context):
        self.context = browser.new_context(viewport={"width": width, "height": height}, **context)
        self.page = self.context.new_page()
        self.complaints, self.requests, self.dialogs = [], [], []
        self.page.on(
            "console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.page.goto(address)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def data(self):
        return json.loads(self.page.locator("#data").text_content())

    def charts(self):
        """Ids of the charts that are shown."""
        return self.page.evaluate(
            "[...document.querySelectorAll('figure.chart[id]:not([hidden])')].map((f) => f.id)"
        )

    def point(self, chart, share):
        """Moves the mouse to a share of a chart's width, and returns what each line says there."""
        plot = self.page.locator(f"#{chart} .plot")
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        x = box["x"] + 62 + share * (box["width"] - 62 - 14)
        self.page.mouse.move(x, box["y"] + box["height"] / 2)
        return self.read(chart)

    def read(self, chart):
        return self.page.evaluate(
            """(id) => [...document.querySelectorAll(`#${id} .legend output`)].map((o) => ({
                series: o.dataset.series, text: o.textContent, value: Number(o.dataset.value),
                time: Number(o.dataset.time), min: Number(o.dataset.min), max: Number(o.dataset.max),
                there: o.dataset.value !== undefined }))""",
            chart,
        )

    def drawn(self, chart, series):
        """Corners of a line, as [x, value], turned back from pixels."""
        return self.page.evaluate(
            """([id, series]) => {
                const svg = document.querySelector(`#${id} svg`);
                const [bottom, top] = svg.dataset.values.split(",").map(Number);
                const [low, high] = svg.dataset.pixels.split(",").map(Number);
                const paths = [...svg.querySelectorAll("path.curve")].filter((p) => p.dataset.series === series);
                return paths.flatMap((p) => [...p.getAttribute("d").matchAll(/[ML]([\\d.-]+) ([\\d.-]+)/g)])
                    .map(([, x, y]) => [Number(x), bottom + ((low - y) / (low - high)) * (top - bottom)]);
            }""",
            [chart, series],
        )
