"""Makes the pictures of docs/mlflow.md from a run on a running MLflow server.

    make demo-mlflow LEAK=1 DEMO_ARGS='--seconds 60'          # prints the run's address, waits for Enter
    .venv/bin/pip install selenium pillow
    .venv/bin/python docs/screenshots.py http://127.0.0.1:PORT/#/experiments/1/runs/RUN_ID

Needs chromium and chromedriver (Debian: chromium, chromium-driver). Knows the page of MLflow 3.17. Look at each
picture before keeping it.
"""

import io
import re
import sys
import tempfile
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

IMAGES = Path(__file__).parent / "images"
COLOURS = 64
MARGIN = 6
PATIENCE = 60
OPTIONS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
]
CARD = '[data-testid="experiment-view-compare-runs-card"]'
MENU = '[data-testid="experiment-view-compare-runs-card-menu"]'
EDIT = '[data-testid="experiment-view-compare-runs-card-edit"]'
SAVE = '[role="dialog"] [data-component-id$=".footer.ok"]'
# Their places among the dialog's lists of metrics.
X_AXIS, Y_AXIS = 0, 1
SEARCH = 'input[placeholder="Search metric charts"]'
# A headless browser shows plotly's buttons all the time; with a mouse they come only over a chart.
TIDY = """
const style = document.createElement("style");
style.textContent = ".modebar { display: none }";
document.head.append(style);
"""


def main():
    address = sys.argv[1].partition("?")[0].rstrip("/")
    experiment, run_id = re.search(r"(.*)/runs/([0-9a-f]{32})", address).groups()
    IMAGES.mkdir(exist_ok=True)
    tab, charts = f"{experiment}/runs/{run_id}/system-metrics", f"{experiment}/runs?compareRunsMode=CHART"
    pictures = (
        (system_metrics, tab),
        (node_and_container, tab),
        (memory_over_training_step, tab),
        (memory_and_loss, charts),
    )
    for take, address in pictures:
        # A profile each: the page remembers how a chart was configured.
        with tempfile.TemporaryDirectory() as profile:
            page = Page(profile)
            try:
                take(page, address)
            finally:
                page.browser.quit()


def system_metrics(page, address):
    page.open(address, width=1500, height=2000)
    page.search("memory", cards=10)
    header = page.wait_for('[data-testid="runs-header"], h2, h3')[0]
    page.save("system-metrics.png", [header, page.wait_for(SEARCH)[0], *page.wait_for(CARD)])


def node_and_container(page, address):
    """Both numbers in one chart, as a user does it with "Configure"."""
    page.open(address, width=1100, height=700)
    page.search("working_set_megabytes$", cards=1)
    page.configure()
    page.choose(Y_AXIS, "node_memory_usage_megabytes")
    page.save_configured("node-and-container.png")


def memory_over_training_step(page, address):
    page.open(address, width=1100, height=700)
    page.search("working_set_megabytes$", cards=1)
    page.configure()
    labels = page.wait_for('[role="dialog"] label')
    metric = next(label for label in labels if label.text.startswith("Metric"))
    metric.find_element(By.TAG_NAME, "input").click()
    page.choose(X_AXIS, "training_step")
    page.save_configured("memory-over-training-step.png")


def memory_and_loss(page, address):
    page.open(address, width=2300, height=1300)
    page.search("^loss$|working_set_megabytes$", cards=2)
    page.wait_for('[data-component-id="mlflow.charts.controls.global_chart_setup_dropdown"]')[0].click()
    wall = [item for item in page.wait_for('[role="menuitemcheckbox"]') if item.text == "Time (wall)"]
    wall[0].click()
    page.settle()
    page.save("memory-and-loss.png", page.wait_for(CARD))


class Page:
    def __init__(self, profile):
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for option in [*OPTIONS, f"--user-data-dir={profile}"]:
            options.add_argument(option)
        self.browser = webdriver.Chrome(
            options=options, service=webdriver.ChromeService("/usr/bin/chromedriver")
        )

    def open(self, address, width, height):
        self.browser.set_window_size(width, height)
        self.browser.get("about:blank")
        self.browser.get(address)
        self.wait_for(CARD)
        self.browser.execute_script(TIDY)
        for button in self.find('[data-component-id="mlflow.assistant.chat_panel.close"]'):
            button.click()
        self.settle()

    def search(self, text, cards):
        # The page remembers what was searched for last.
        self.wait_for(SEARCH)[0].send_keys(Keys.CONTROL, "a")
        self.wait_for(SEARCH)[0].send_keys(text)
        WebDriverWait(self.browser, PATIENCE).until(lambda _: len(self.find(CARD)) == cards)
        self.settle()

    def configure(self):
        """Opens what the first chart's menu calls "Configure"."""
        self.wait_for(MENU)[0].click()
        self.wait_for(EDIT)[0].click()

    def choose(self, axis, name):
        self.wait_for('[role="dialog"] input[id^="dubois-select"]')[axis].send_keys(name)
        self.wait_for(f'.rc-virtual-list [data-testid$="{name}"]')[0].click()

    def save_configured(self, name):
        self.wait_for(SAVE)[0].click()
        self.settle()
        self.wait_for('[data-component-id="fullscreen_button_chartcard"]')[0].click()
        self.settle()
        self.save(name, self.wait_for('[role="dialog"] [class*="modal-content"]'), margin=-8, below=90)

    def find(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def wait_for(self, selector):
        return WebDriverWait(self.browser, PATIENCE).until(lambda _: self.find(selector))

    def settle(self):
        """Until two pictures in a row are the same: charts are drawn late."""
        before = None

        def same(browser):
            nonlocal before
            now, last = browser.get_screenshot_as_png(), before
            before = now
            return now == last

        WebDriverWait(self.browser, PATIENCE, poll_frequency=2).until(same)

    def save(self, name, elements, margin=MARGIN, below=0):
        """What the elements span, with a margin and without what is empty below, in few colours."""
        boxes = [element.rect for element in elements]
        left, top = (min(box[side] for box in boxes) - margin for side in "xy")
        right = max(box["x"] + box["width"] for box in boxes) + margin
        bottom = max(box["y"] + box["height"] for box in boxes) + margin - below
        picture = Image.open(io.BytesIO(self.browser.get_screenshot_as_png())).convert("RGB")
        picture = picture.crop(
            (max(0, left), max(0, top), min(right, picture.width), min(bottom, picture.height))
        )
        picture.quantize(COLOURS, dither=Image.Dither.NONE).save(IMAGES / name, optimize=True)
        print(
            f"{IMAGES / name}: {picture.width}×{picture.height}, {(IMAGES / name).stat().st_size // 1000} KB"
        )


if __name__ == "__main__":
    main()
