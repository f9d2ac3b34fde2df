"""Sketching schemes, signatures, similarity estimates and the planning of bands."""

from minwise.sketches.estimates import Estimate, Estimates, slots_for
from minwise.sketches.planning import CurvePoint, Plan, plan, plan_by_area
from minwise.sketches.schemes import FastSketch, MinHash, OnePermutation, Scheme
from minwise.sketches.signatures import Signatures
from minwise.sketches.similarity import (
    RowCounts,
    containment,
    hamming,
    jaccard,
    jaccard_distance,
    row_counts,
    similarities,
)

__all__ = [
    "CurvePoint",
    "Estimate",
    "Estimates",
    "FastSketch",
    "MinHash",
    "OnePermutation",
    "Plan",
    "RowCounts",
    "Scheme",
    "Signatures",
    "containment",
    "hamming",
    "jaccard",
    "jaccard_distance",
    "plan",
    "plan_by_area",
    "row_counts",
    "similarities",
    "slots_for",
]
