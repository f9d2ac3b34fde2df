"""Entry point of ``python -m docs.tools``: write all generated pages and blocks."""

from docs.tools.pages import PAGES

if __name__ == "__main__":
    for page in PAGES:
        page.path.write_text(page.render(), encoding="utf-8")
