"""Text processing: reading texts, normalising them and cutting them into shingles."""
