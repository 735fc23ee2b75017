"""Makes the pictures of docs/report.md: a leaking job of examples/ in a container of 400 MiB, with MLflow, until the
kernel kills it; and eight made-up ranks, one of which holds the others up.

    cargo build && .venv/bin/python docs/report_pictures.py

Needs what tests/test_report.py needs, and cgroups to limit the job with. Look at each picture before keeping it.
"""

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "tests"))
from support import browser, made_store
from support.mlflow_server import MlflowServer

RANKSCOPE = Path(os.environ.get("RANKSCOPE_BIN", ROOT / "target" / "debug" / "rankscope"))
COLOURS = 160
JOB = """
memory_mib=400
. examples/limits.sh
trap remove_groups EXIT
limit
inside "$RANKSCOPE" run --store "$STORE" --grace 60 -- "$PYTHON" examples/train_digits.py --mlflow --leak --seconds 60
"""


def main():
    with tempfile.TemporaryDirectory() as scratch, browser.chromium() as chromium:
        scratch = Path(scratch)
        killed(chromium, scratch)
        many_ranks(chromium, scratch)


def killed(chromium, scratch):
    with MlflowServer(scratch / "server") as server:
        environment = {
            "RANKSCOPE": str(RANKSCOPE), "STORE": str(scratch / "killed"), "PYTHON": sys.executable,
            "MLFLOW_TRACKING_URI": server.uri, "MLFLOW_DISABLE_TELEMETRY": "true",
        }  # fmt: skip
        subprocess.run(["bash", "-c", JOB], cwd=ROOT, env={**os.environ, **environment}, check=False)
        page = report(scratch, scratch / "killed", "killed.html")
    with browser.Opened(chromium, page, width=1180, height=1500) as shown:
        save(shown.page.screenshot(), "report-light.png")
    with browser.Opened(chromium, page, width=1180, height=900, color_scheme="dark") as shown:
        shown.page.evaluate("document.getElementById('node').open = true")
        shown.page.locator("#chart-memory").scroll_into_view_if_needed()
        shown.page.evaluate("document.getElementById('chart-memory').scrollIntoView()")
        shown.page.evaluate("scrollBy(0, -110)")
        save(shown.page.screenshot(), "report-dark.png")
    with browser.Opened(
        chromium, page, width=390, height=844, device_scale_factor=2, has_touch=True
    ) as shown:
        shown.page.evaluate("document.getElementById('chart-memory').scrollIntoView()")
        shown.page.evaluate("scrollBy(0, -60)")
        save(shown.page.screenshot(), "report-phone.png")


def many_ranks(chromium, scratch):
    made_store.job(RANKSCOPE, scratch / "ranks", scratch / "schema", ranks=8, windows=720)
    page = report(scratch, scratch / "ranks", "ranks.html")
    with browser.Opened(chromium, page, width=1180, height=1000) as shown:
        shown.page.locator("#mini").select_option(label="GPU power")
        shown.page.locator(".mini[data-rank='3']").click()
        shown.page.evaluate("document.getElementById('ranks').scrollIntoView()")
        shown.page.evaluate("scrollBy(0, -110)")
        save(shown.page.screenshot(), "report-ranks.png")


def report(scratch, store, name):
    subprocess.run([RANKSCOPE, "report", store, "-o", scratch / name], check=True, cwd=scratch)
    return (scratch / name).as_uri()


def save(png, name):
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(IMAGES / name, optimize=True)
    print(f"{IMAGES / name}: {picture.width}×{picture.height}, {(IMAGES / name).stat().st_size // 1000} KB")


if __name__ == "__main__":
    main()
