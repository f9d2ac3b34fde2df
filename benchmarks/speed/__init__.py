"""Speed: text in, signatures out, against other tools and against the disk format."""
