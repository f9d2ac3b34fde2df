"""Reference implementation of the pipeline in plain Python and NumPy.

It is written from the specification (DESIGN, appendix) and from nothing else, so that it can serve as an oracle: the
kernel must equal it bit for bit. Read it to see how a step works, or run it on examples small enough to follow by hand.
It is slow; for real data use :mod:`minwise.text` and :mod:`minwise.sketches`, which call the kernel.

=============  ===============================================================================
hashing        bytes and items → 64-bit words
text           text → normalised text → tokens → shingles → elements
sketch         elements → slots, packed slots
banding        slots → band keys → candidate pairs → groups; the cost of comparing all pairs
keeping        rows → the order in which they are kept
containment    sets → pairs of which one lies in the other → removed sets
nearest        sets → the most similar ones of each, mutual ones, matched ones
passages       tokens → repeated passages and their first occurrences
units          text → lines, sentences, paragraphs → those that repeat
cuts           text, tokens, covered tokens → pieces to cut out
contamination  tokens → n-grams of evaluation items in documents
values         sets and values → similar pairs of one value, or of different ones
weighting      sets → frequencies → weights of elements → weighted slots and similarity
vectors        vectors → slots on random lines → keys; exact distances
matrix         sets as columns of a boolean matrix; MinHash and bins by explicit permutations
universal      MinHash in one pass over the rows, with universal hash functions, and its trace
bbit           b-bit minwise hashing in a small universe, counted exactly
=============  ===============================================================================

All but the last three specify the kernel; these are textbook algorithms for teaching and for testing the theory.
"""

from minwise.reference.banding import (
    band_keys,
    comparison_days,
    components,
    content_hash,
    false_candidates,
    pair_count,
    propose_pairs,
    slot_keys,
    star,
)
from minwise.reference.bbit import (
    approximation_error,
    collision_probabilities,
    low_bits_of_minimum,
    worst_approximation_error,
)
from minwise.reference.containment import contained_pairs, containment, containment_star
from minwise.reference.contamination import Contamination, contaminated_documents, item_ngrams, rare_ngrams
from minwise.reference.cuts import cut_text
from minwise.reference.hashing import (
    Domain,
    fold,
    fold_words,
    hash_bytes,
    hash_item,
    hash_items,
    key,
    mix,
    mix_words,
    multiply_words,
)
from minwise.reference.keeping import keep_order
from minwise.reference.matrix import (
    BooleanMatrix,
    agreement,
    boolean_matrix,
    column_similarity,
    count_row_types,
    minhash_by_order,
    minhash_by_position,
    one_permutation_bins,
    one_permutation_estimate,
    permutation_signature,
)
from minwise.reference.nearest import (
    Neighbour,
    best_first_matching,
    mutual_neighbours,
    nearest_sets,
)
from minwise.reference.passages import Passage, repeated_passages
from minwise.reference.sketch import (
    EMPTY,
    EMPTY_32,
    count_jointly_empty,
    count_matches,
    densify_optimal,
    densify_rotation,
    fast_sketch,
    merge,
    minhash_sketch,
    one_permutation_sketch,
    pack_bits,
    signature_bytes,
    unpack_bits,
)
from minwise.reference.text import (
    Normalisation,
    NormalisedCharacter,
    Span,
    character_properties,
    normalise,
    normalise_with_offsets,
    parse_shingle,
    shingle_hashes,
    shingle_strings,
    spans,
    tokens,
)
from minwise.reference.units import RepeatedUnit, repeated_units, unit_starts
from minwise.reference.universal import (
    UniversalHash,
    draw_universal_hashes,
    is_prime,
    one_pass_signature,
    permutation_bytes,
    rows_from_columns,
    trace_one_pass,
)
from minwise.reference.values import pairs_by_value
from minwise.reference.vectors import (
    cosine_distance,
    euclidean_distance,
    line_weights,
    natural_log,
    vector_content,
    vector_keys,
    vector_slots,
)
from minwise.reference.weighting import (
    rarity_weight,
    table_counts,
    table_slot,
    weighted_similarity,
    weighted_sketch,
)

__all__ = [
    "EMPTY",
    "EMPTY_32",
    "BooleanMatrix",
    "Contamination",
    "Domain",
    "Neighbour",
    "Normalisation",
    "NormalisedCharacter",
    "Passage",
    "RepeatedUnit",
    "Span",
    "UniversalHash",
    "agreement",
    "approximation_error",
    "band_keys",
    "best_first_matching",
    "boolean_matrix",
    "character_properties",
    "collision_probabilities",
    "column_similarity",
    "comparison_days",
    "components",
    "contained_pairs",
    "containment",
    "containment_star",
    "contaminated_documents",
    "content_hash",
    "cosine_distance",
    "count_jointly_empty",
    "count_matches",
    "count_row_types",
    "cut_text",
    "densify_optimal",
    "densify_rotation",
    "draw_universal_hashes",
    "euclidean_distance",
    "false_candidates",
    "fast_sketch",
    "fold",
    "fold_words",
    "hash_bytes",
    "hash_item",
    "hash_items",
    "is_prime",
    "item_ngrams",
    "keep_order",
    "key",
    "line_weights",
    "low_bits_of_minimum",
    "merge",
    "minhash_by_order",
    "minhash_by_position",
    "minhash_sketch",
    "mix",
    "mix_words",
    "multiply_words",
    "mutual_neighbours",
    "natural_log",
    "nearest_sets",
    "normalise",
    "normalise_with_offsets",
    "one_pass_signature",
    "one_permutation_bins",
    "one_permutation_estimate",
    "one_permutation_sketch",
    "pack_bits",
    "pair_count",
    "pairs_by_value",
    "parse_shingle",
    "permutation_bytes",
    "permutation_signature",
    "propose_pairs",
    "rare_ngrams",
    "rarity_weight",
    "repeated_passages",
    "repeated_units",
    "rows_from_columns",
    "shingle_hashes",
    "shingle_strings",
    "signature_bytes",
    "slot_keys",
    "spans",
    "star",
    "table_counts",
    "table_slot",
    "tokens",
    "trace_one_pass",
    "unit_starts",
    "unpack_bits",
    "vector_content",
    "vector_keys",
    "vector_slots",
    "weighted_similarity",
    "weighted_sketch",
    "worst_approximation_error",
]
