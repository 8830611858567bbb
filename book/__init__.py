"""The site: `make docs` builds it from the repository, into static files.

    docs/**/*.md, README.md, ...   pages as they are           \
    docstrings, tables             reference/*.md (reference/)  >  build/pages  ->  Sphinx  ->  build/site/VERSION/
    examples/*.py                  gallery/*.md (gallery.py)   /

`navigation.toml` gives the order of the pages. No page is written twice: what the site shows of docs/ is docs/.
"""
