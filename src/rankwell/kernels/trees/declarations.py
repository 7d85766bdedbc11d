"""Definitions that the CUDA kernels of boosted trees share with Python."""

from __future__ import annotations

from rankwell.kernels.c_declarations import Struct, constants
from rankwell.kernels.trees import losses, rules
from rankwell.kernels.trees.columns import COLUMN, COLUMN_VALUES, DIVISOR, HAS_MISSING, N_CODES
from rankwell.kernels.trees.slabs import SLAB_BYTES, WORD

# Parts that are opened at the same time, at most; and the share of the cuts that are left which are opened before it is
# certain that they are needed.
MOST_OPENINGS = 64
OPENED_SHARE = 0.6
# Leaves of a symmetric tree's level that are searched at the same time.
LEVEL_LEAVES = 16
# Words of 32 bits of a set of codes.
SET_WORDS = COLUMN_VALUES // 32
# Integers of a feature in `Data.by_feature`.
FEATURE_INTEGERS = 5
# Lanes that work on a query's pairs, and rows of pairs together: those of the CPU's `pair_rows`, since the order of
# sums is part of the result.
PAIR_LANES = 16
PAIR_ROWS = 4
# Threads of a block of short queries, and of one long query; documents of the short queries of a block, so many that
# with a pair loss the multiprocessor's memory is as soon full as its registers.
QUERY_THREADS = 64
LONG_THREADS = 512
BLOCK_DOCUMENTS = 528
NOISE_THREADS = 256
LN_2 = 0.6931471805599453

PIECE = Struct(
    "Piece",  # columns of a slab that are counted together
    (
        ("int", "slab", ""),
        ("int", "offset", "of its first column in the slab, a multiple of 16"),
        ("int", "readers", "16 columns each: 1 to 4"),
        ("int", "n_columns", "at most 16 for each reader"),
    ),
)
DATA = Struct(
    "Data",
    (
        ("const Piece*", "pieces", "(n_pieces,), of all slabs"),
        ("const unsigned long long*", "slabs", "(n_slabs,), the address of each, [n_docs][SLAB_BYTES]; 0 if elsewhere"),
        ("const unsigned char*", "columns", "[n_columns][n_docs], the same bytes by column, if has_columns"),
        ("const int*", "column_ptr", "(n_columns + 1,), the features of each column"),
        ("const int*", "features", ""),
        ("const int*", "sizes", "(n_columns,), values that a column can have"),
        ("const int*", "by_feature", "[n_features][FEATURE_INTEGERS]"),
        ("const unsigned char*", "allowed", "(n_features,), 1 for those that may be cut"),
        ("const int*", "direction", "(n_features,), 1 for those that rise, -1 for those that fall, if any does"),
        ("const int*", "set_codes", "(n_features,), the codes that sets of a categorical feature can have, else 0"),
        ("const unsigned long long*", "groups", "[n_features][INTERACTION_WORDS], the groups that each is in"),
        ("const int*", "query_of", "(n_docs,), the query of each document, if queries are drawn"),
        ("int", "n_pieces", ""),
        ("int", "has_columns", ""),
        ("int", "n_docs", ""),
        ("int", "n_slabs", ""),
        ("int", "slab_columns", "columns in each slab, the last one excepted; a multiple of 8"),
        ("int", "n_columns", ""),
        ("int", "n_features", ""),
    ),
)
SETTINGS = Struct(
    "Settings",  # see `TreeSettings`
    (
        ("double", "l1", ""),
        ("double", "l2", ""),
        ("double", "min_gain", ""),
        ("double", "min_hessian_leaf", ""),
        ("double", "learning_rate", ""),
        ("double", "queries", "shares of what is drawn, see `sampling.py`"),
        ("double", "documents", ""),
        ("double", "node_features", ""),
        ("long long", "query_seed", ""),
        ("long long", "document_seed", ""),
        ("long long", "node_seed", ""),
        ("long long", "tree", "its number"),
        ("long long", "first_draw", "the number of its root over all trees"),
        ("double", "category_smoothing", ""),
        ("double", "category_l2", ""),
        ("int", "max_category_set", ""),
        ("int", "n_leaves", ""),
        ("int", "max_depth", ""),
        ("int", "min_docs_leaf", ""),
        ("int", "most_opened", "parts that may be opened in a tree"),
        ("int", "is_random", "whether a tree with a cut may come after one without"),
    ),
)
GROWTH = Struct(
    "Growth",  # the progress of a tree
    (
        ("unsigned", "arrived", "blocks that are done with a stage"),
        ("unsigned", "stage", "stages that all blocks are done with"),
        ("unsigned", "largest_gradient", "the bits of the largest |gradient|"),
        ("unsigned", "largest_hessian", "likewise"),
        ("long long", "gradient_sum", "Σ|gradient| in units of the first exponent"),
        ("long long", "hessian_sum", "likewise"),
        ("long long", "total", "packed sum of all documents"),
        ("long long", "least_hessian", "min_hessian_leaf in units"),
        ("long long", "n_counting", "documents that count"),
        ("long long", "min_docs_leaf", "for their number"),
        ("double", "l1", "in units, as the next two"),
        ("double", "l2", ""),
        ("double", "min_gain", ""),
        ("int", "gradient_exponent", ""),
        ("int", "hessian_exponent", ""),
        ("int", "finished", "nothing is left to be opened"),
        ("int", "n_parts", ""),
        ("int", "n_opened", ""),
        ("int", "n_openings", "parts that are being opened"),
        ("int", "n_leaves", "0 if there is no tree"),
        ("int", "n_closed", "parts in `places`"),
        ("int", "n_steps", "times that parts were opened, for measurements"),
        ("int", "level", "of a symmetric tree, which is cut next; likewise the next three"),
        ("int", "first_side", "the first part that the last level's cut made"),
        ("int", "n_waiting", "parts that the level's cut divides, not opened yet"),
        ("int", "is_deepest", "no level follows"),
    ),
)
PART = Struct(
    "Part",  # documents that are a node of the tree, or may become one
    (
        ("long long", "total", "packed sums"),
        ("long long", "left_total", "of the left side of the best cut"),
        ("double", "gain", "of the best cut, 0 if there is none"),
        ("int", "start", "places of its documents"),
        ("int", "end", ""),
        ("int", "buffer", "which of the two arrays of rows they are in"),
        ("int", "slot", "of its histograms"),
        ("int", "depth", ""),
        ("int", "feature", "of the best cut, as the next two"),
        ("int", "code", ""),
        ("int", "missing_left", ""),
        ("int", "above", "the part that it is a side of, or -1"),
        ("int", "left", "once it is opened, the part of its left side, which the right one follows; else -1"),
        ("int", "leaf", "its number if it is a leaf of the tree, else -1"),
        ("int", "node", "its number if it is a node, else -1"),
    ),
)
OPENING = Struct(
    "Opening",  # a part that is being opened, or the root that is being counted
    (
        ("long long", "sides", "documents moved so far: left in the upper half, right in the lower one"),
        ("int", "part", "-1 for the root"),
        ("int", "left", "the part of the left side; the root itself"),
        ("int", "slot", "of the histograms of the smaller side"),
        ("int", "unused", ""),
    ),
)
FOUND = Struct(
    "Found",  # the best cut of a side by the features of a column or of a word's columns
    (
        ("double", "gain", "0 if there is none"),
        ("long long", "left_total", ""),
        ("int", "feature", ""),
        ("int", "code", ""),
        ("int", "missing_left", ""),
        ("int", "unused", ""),
    ),
)
NODE = Struct(
    "Node",
    (
        ("double", "gain", "in units"),
        ("long long", "total", ""),
        ("int", "feature", ""),
        ("int", "code", ""),
        ("int", "missing_left", ""),
        ("int", "left", ""),
        ("int", "right", ""),
        ("int", "docs", ""),
    ),
)
LEAF = Struct(
    "Leaf",
    (
        ("long long", "total", ""),
        ("int", "docs", ""),
        ("int", "part", ""),
        ("float", "value", ""),
        ("int", "unused", ""),
    ),
)
PLACES = Struct(
    "Places",  # of the documents that one value is added to
    (
        ("int", "start", ""),
        ("int", "before", "places of all parts before"),
        ("int", "buffer", ""),
        ("float", "value", ""),
    ),
)
BOUNDS = Struct("Bounds", (("double", "low", "of a part's step"), ("double", "high", "")))
SPACE = Struct(
    "Space",
    (
        ("const float*", "gradient", "(n_docs,)"),
        ("const float*", "hessian", "(n_docs,)"),
        ("float*", "scores", "(n_docs,)"),
        ("unsigned*", "rows_even", "(n_docs,), documents by part: those of even depth"),
        ("unsigned*", "rows_odd", "and of odd depth"),
        ("long long*", "packed_even", "(n_docs,), their gradients and Hessians"),
        ("long long*", "packed_odd", ""),
        ("long long*", "pool", "[slot][slab][half][value][32 columns], packed sums"),
        ("Growth*", "growth", ""),
        ("Part*", "parts", ""),
        ("Bounds*", "bounds", "by part, if features rise or fall"),
        ("unsigned long long*", "live_groups", "[part][INTERACTION_WORDS], those that all features above it are in"),
        ("unsigned*", "sets", "[part][SET_WORDS], the codes on the left of a cut by categories, a bit each"),
        ("unsigned*", "found_sets", "[opening][side][word][SET_WORDS], likewise"),
        ("unsigned*", "node_sets", "[node][SET_WORDS], likewise"),
        ("Opening*", "openings", "(MOST_OPENINGS,)"),
        ("Found*", "found", "[opening][side][word]"),
        ("Node*", "nodes", "(n_leaves,)"),
        ("Leaf*", "leaves", "(n_leaves,)"),
        ("Places*", "places", "of the documents of all parts that are not opened"),
        ("int*", "stopped", "1 once no tree has a cut any more: none is grown then"),
    ),
)
QUERIES = Struct(
    "Queries",
    (
        ("const float*", "scores", "(n_docs,)"),
        ("float*", "gradient", "(n_docs,), written"),
        ("float*", "hessian", "(n_docs,), written"),
        ("const int*", "query_ptr", "(n_queries + 1,)"),
        ("const float*", "gain", "(n_docs,)"),
        ("const double*", "inverse", "(n_queries,), what a query's gradients are multiplied by; 0 without pairs"),
        ("const float*", "discount", "by place"),
        ("const float*", "by_distance", "D of lambdaloss, by distance"),
        ("const float*", "weight", "(n_docs,), if has_weights"),
        ("const int*", "order", "queries, the longest first"),
        ("const int*", "offset", "of each of them in its block's memory"),
        ("const int*", "block_ptr", "(n_blocks + 1,), the queries of each block, in `order`"),
        ("long long", "seed", "of random numbers"),
        ("long long", "tree", "its number, for losses that draw random numbers"),
        ("double", "sigma", ""),
        ("float", "sigma_32", "rounded to float32"),
        ("int", "truncation", ""),
        ("int", "normalize", ""),
        ("int", "has_weights", ""),
    ),
)

CUDA = constants(
    SLAB_BYTES=SLAB_BYTES,
    WORD=WORD,
    COLUMN_VALUES=COLUMN_VALUES,
    COLUMN=COLUMN,
    DIVISOR=DIVISOR,
    N_CODES=N_CODES,
    HAS_MISSING=HAS_MISSING,
    FEATURE_INTEGERS=FEATURE_INTEGERS,
    GRADIENT_BITS=rules.GRADIENT_BITS,
    HESSIAN_BITS=rules.HESSIAN_BITS,
    FIRST_BITS=rules._FIRST_BITS,
    LOWER_HALF=rules.LOWER_HALF,
    MOST_OPENINGS=MOST_OPENINGS,
    OPENED_SHARE=OPENED_SHARE,
    LEVEL_LEAVES=LEVEL_LEAVES,
    SET_WORDS=SET_WORDS,
    FEW_CODES=rules.FEW_CODES,
    PAIR_LANES=PAIR_LANES,
    PAIR_ROWS=PAIR_ROWS,
    QUERY_THREADS=QUERY_THREADS,
    LONG_THREADS=LONG_THREADS,
    BLOCK_DOCUMENTS=BLOCK_DOCUMENTS,
    NOISE_THREADS=NOISE_THREADS,
    LAMBDALOSS=losses.LAMBDALOSS,
    PAIRWISE=losses.PAIRWISE,
    MAP=losses.MAP,
    FARTHEST=losses.FARTHEST,
    NEAREST=losses.NEAREST,
    LEAST_REST=losses.LEAST_REST,
    LN_2=LN_2,
) + "".join(
    struct.declaration()
    for struct in (PIECE, DATA, SETTINGS, GROWTH, PART, OPENING, FOUND, NODE, LEAF, PLACES, BOUNDS, SPACE, QUERIES)
)
