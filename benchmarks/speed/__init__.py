"""Text to signatures, compared with other tools and with reading the file."""
