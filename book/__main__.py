"""Build the site: `python -m book`, which `make docs` calls.

In: the repository. Out: `build/site/VERSION/`, static files that a browser opens without a server; an archive of
them, `build/graphc-VERSION-docs.zip`; exit code 1 where Sphinx warns, of a broken link for instance. `--serve` serves
them afterwards, at http://localhost:8000.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import shutil
import subprocess
import sys
from pathlib import Path

from book import gallery, machine_code, notebooks, pages, reference
from book.navigation import ROOT
from graphc.startup.versions import VERSION

BUILD = ROOT / "build"
SITE = BUILD / "site"


def main() -> int:
    """Build, and serve where that is asked for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m book", description="Builds the site.")
    parser.add_argument("--serve", action="store_true", help="serve the site when it is built")
    parser.add_argument("--port", type=int, default=8000, help="where (8000)")
    parser.add_argument("--no-notebooks", action="store_true", help="run no program of the gallery")
    parsed = parser.parse_args()
    machine_code.main()
    if not parsed.no_notebooks:
        notebooks.write(path.stem for path in gallery.PROGRAMS)
    staged = pages.stage(BUILD / "pages", notebooks.FOLDER)
    print(reference.gaps(staged / "reference"))
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-c", str(ROOT / "book")]
    code = subprocess.run([*command, str(staged), str(SITE / VERSION)], cwd=ROOT, check=False).returncode
    if code == 0:
        list_versions(SITE)
        archive = shutil.make_archive(str(BUILD / f"graphc-{VERSION}-docs"), "zip", SITE / VERSION)
        print(f"{SITE / VERSION / 'index.html'}\n{archive}")
        if parsed.serve:
            serve(parsed.port)
    return code


def list_versions(site: Path) -> None:
    """Write the list of the versions that stand below `site`, newest first, and a page that leads to the newest."""
    folders = [each.parent.name for each in site.glob("*/index.html")]
    versions = sorted(folders, key=lambda name: [int(part) if part.isdigit() else -1 for part in name.split(".")])[::-1]
    (site / "versions.js").write_text(f"window.GRAPHC_VERSIONS = {json.dumps(versions)};\n", "utf-8")
    newest = f'<meta http-equiv="refresh" content="0; url={versions[0]}/index.html">\n'
    (site / "index.html").write_text(newest, "utf-8")


def serve(port: int) -> None:
    """Serve the site to this machine until the user interrupts."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        print(f"http://localhost:{port}/ (Ctrl-C ends it)")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    sys.exit(main())
