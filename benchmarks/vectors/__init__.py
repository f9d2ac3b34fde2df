"""All pairs of vectors within a distance and nearest neighbours, compared with brute force and other tools."""
