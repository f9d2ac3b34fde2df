"""The persistent index: documents remembered on disk, asked for near-duplicates in milliseconds."""

from minwise.index.answers import Added, Answer, Damage, Decision, Hit, Listing, StoredDocument
from minwise.index.index import Index

__all__ = ["Added", "Answer", "Damage", "Decision", "Hit", "Index", "Listing", "StoredDocument"]
