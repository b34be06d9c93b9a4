"""Pages in a real browser, if one is installed."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


def browse(page: str, script: str, folder: Path) -> dict:
    """Open a page in the browser; returns the script's result `seen`."""
    (folder / "page.html").write_text(
        page.replace("</body>", f"<script type='module'>{script}</script></body>"), encoding="utf-8"
    )
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=500,900", "--virtual-time-budget=2000"]
    dumped = subprocess.run(
        [CHROMIUM, *options, f"--user-data-dir={folder}/profile", "--dump-dom", f"file://{folder}/page.html"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    return json.loads(html.unescape(re.search(r'<pre id="seen">(.*?)</pre>', dumped.stdout)[1]))
