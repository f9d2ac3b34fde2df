"""Speed of the exact join, compared with the bands and with SetSimilaritySearch."""
