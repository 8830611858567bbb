"""What Sphinx is told: https://www.sphinx-doc.org/en/master/usage/configuration.html"""

from __future__ import annotations

from graphc.startup.versions import VERSION

project = "graphc"
author = "the graphc authors"
copyright = "the graphc authors, MIT licence"
version = release = VERSION

extensions = ["myst_parser"]
myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # listings of the loop language are no Python

html_theme = "furo"
html_title = f"graphc {VERSION}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["../../versions.js", "versions_menu.js"]
html_copy_source = False
html_show_sourcelink = False
html_use_index = True
pygments_style = "friendly"
pygments_dark_style = "github-dark"
html_theme_options = {"navigation_with_keys": True}
