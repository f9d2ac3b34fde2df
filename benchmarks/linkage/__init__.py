"""Quality of record linkage on the Febrl datasets."""
