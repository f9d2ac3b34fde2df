"""The stages of the pipeline, one file each: read, shingle, sketch, verify."""
