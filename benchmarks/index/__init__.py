"""Speed of the persistent index as it grows, and compared with an index in memory."""
