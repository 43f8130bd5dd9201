"""Takes the pictures of docs/dashboard.md from stored results.

python -m tests.dashboard.screenshots results docs/images
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser import FLAGS, chromium
from tests.dashboard.conftest import serve

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
PICTURES = (
    ("overview", "", DESKTOP, "light"),
    ("overview-dark", "", DESKTOP, "dark"),
    ("overview-phone", "", PHONE, "light"),
    ("operator", "operator?operator=softmax", DESKTOP, "light"),
    ("roofline", "roofline", DESKTOP, "light"),
    ("compare", "compare?axis=implementation&left=torch_eager&right=torch_compile", DESKTOP, "light"),
)


def take(results: Path, folder: Path) -> None:
    """Write every picture of ``PICTURES`` as ``folder/dashboard-<name>.png``."""
    folder.mkdir(parents=True, exist_ok=True)
    site, server = serve(results)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        for name, link, size, scheme in PICTURES:
            page = browser.new_page(viewport=size, color_scheme=scheme)
            page.goto(site.address + link)
            page.wait_for_selector("main .page")
            page.wait_for_load_state("networkidle")
            page.wait_for_timeout(1500)  # charts, and changes of level that are looked for beside the page
            page.screenshot(path=folder / f"dashboard-{name}.png")
            page.close()
        browser.close()
    server.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]))
