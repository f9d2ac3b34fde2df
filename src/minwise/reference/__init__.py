"""Reference: the readable twin of the whole pipeline, in plain Python and NumPy.

It is written from DESIGN, section 3, and from nothing else, so that it can serve as an oracle: the kernel must equal
it bit for bit. It is also where to read how something is done, and to try it on examples small enough to follow by
hand.

=============  ===============================================================================
hashing        bytes and items → 64-bit words
normalise      text → normalised text, with the place each character came from
text           text → tokens → shingles → elements
sketch         elements → slots, packed slots
banding        slots → band keys → candidate pairs → groups
matrix         sets as columns of a boolean matrix; minhash and bins by explicit permutations
universal      the one-pass row algorithm with universal hash functions, and its trace
bbit           b-bit minwise hashing in a small universe, counted exactly
sizing         how many bytes, pairs and days
vectors        vectors → slots on random lines → keys; exact distances
=============  ===============================================================================
"""

from minwise.reference.banding import band_keys, components, content_hash, propose_pairs, star
from minwise.reference.bbit import (
    approximation_error,
    collision_probabilities,
    comparison_days,
    false_candidates,
    low_bits_of_minimum,
    pair_count,
    permutation_bytes,
    signature_bytes,
    worst_approximation_error,
)
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
from minwise.reference.matrix import (
    BooleanMatrix,
    RowCounts,
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
    unpack_bits,
)
from minwise.reference.text import (
    Normalisation,
    Placed,
    Span,
    character_properties,
    normalise,
    parse_shingle,
    place,
    shingle_hashes,
    shingle_strings,
    spans,
    tokens,
)
from minwise.reference.universal import (
    UniversalHash,
    draw_universal_hashes,
    is_prime,
    one_pass_signature,
    rows_from_columns,
    trace_one_pass,
)
from minwise.reference.vectors import (
    cosine_distance,
    euclidean_distance,
    line_weights,
    natural_log,
    vector_content,
    vector_keys,
    vector_slots,
)

__all__ = [
    "EMPTY",
    "EMPTY_32",
    "BooleanMatrix",
    "Domain",
    "Normalisation",
    "Placed",
    "RowCounts",
    "Span",
    "UniversalHash",
    "agreement",
    "approximation_error",
    "band_keys",
    "boolean_matrix",
    "character_properties",
    "collision_probabilities",
    "column_similarity",
    "comparison_days",
    "components",
    "content_hash",
    "cosine_distance",
    "count_jointly_empty",
    "count_matches",
    "count_row_types",
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
    "natural_log",
    "normalise",
    "one_pass_signature",
    "one_permutation_bins",
    "one_permutation_estimate",
    "one_permutation_sketch",
    "pack_bits",
    "pair_count",
    "parse_shingle",
    "permutation_bytes",
    "permutation_signature",
    "place",
    "propose_pairs",
    "rows_from_columns",
    "shingle_hashes",
    "shingle_strings",
    "signature_bytes",
    "spans",
    "star",
    "tokens",
    "trace_one_pass",
    "unpack_bits",
    "vector_content",
    "vector_keys",
    "vector_slots",
    "worst_approximation_error",
]
