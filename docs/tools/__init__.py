"""What builds the documentation: pages that are generated, and what the site needs beyond Markdown."""
