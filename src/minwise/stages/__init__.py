"""The stages of the pipeline, one file each: read, shingle, sketch, band, verify, cluster, keep, expand."""
