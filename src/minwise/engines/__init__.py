"""The engines: they arrange the stages, and never compute what a stage computes."""
