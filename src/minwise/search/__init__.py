"""Local search engine: first pass, bands, candidates, verification and clustering.

Data passes through the modules in this order: :mod:`~minwise.search.grouping` (only with ``group_by`` or
``transpose``), :mod:`~minwise.search.first_pass`, :mod:`~minwise.search.candidates` or
:mod:`~minwise.search.exact_join`, :mod:`~minwise.search.verification`, :mod:`~minwise.search.clustering`. Each stage
leaves its files in a :mod:`~minwise.search.workdir`, so an interrupted run resumes after the last finished file.
"""
