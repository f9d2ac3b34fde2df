"""``python -m docs.tools`` writes every page, and part of a page, that is generated."""

from docs.tools.pages import PAGES

if __name__ == "__main__":
    for page in PAGES:
        page.path.write_text(page.made(), encoding="utf-8")
