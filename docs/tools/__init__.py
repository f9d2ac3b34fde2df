"""Tools that generate pages of the documentation and extend the site generator."""
