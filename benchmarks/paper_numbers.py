"""Numbers that the papers print, each with its table or section, where neither `far_paper` nor `thesis` has them.

Those of the FAR paper are in `rankwell.hardware.rankboost.far_paper`, those of the ListNet thesis's tables in
`rankwell.hardware.listnet.thesis`. What a paper shows only as a picture has no number here.
"""

from __future__ import annotations

# Jin and Lin 2014, Table 2: seconds of training with direct counting, with an order-statistic tree, and on their GPU.
RANKSVM_TABLE_2 = {
    "mslr10k": "DCM 2,791 s, OST 2,481 s, GPU 276 s (raw features)",
    "mslr30k": "DCM 19,450 s, OST 17,019 s, GPU 939 s (raw features)",
    "mq2007-list": "DCM 381 s, OST 203 s, GPU 22.5 s",
    "mq2008-list": "DCM 493 s, OST 276 s, GPU 37.2 s",
    "mq2007": "DCM 12.67 s, OST 10.18 s, GPU 5.90 s",
}

# Xu et al. 2009, sections 4.3 and 4.4, at the size of their Table II: a round's speed-up over the software M3.int.
FAR_SPEEDUPS = {"FAR1": 17.28, "FAR2": 27.63}
# Section 4.4: as many threads as are needed to be as fast as FAR1.
FAR_THREADS_LIKE_FAR1 = 52

# Wang et al. 2010, Table I: documents and features; Table II: seconds of a round, and its speed-up over the CPU's.
CUDA_N_DOCS, CUDA_N_FEATURES = 173_354, 2_576
CUDA_ROUND_SECONDS = {"CPU": 12.2815, "CUDA": 0.5365, "ATI": 1.328}
CUDA_SPEEDUPS = {"CUDA": 22.9, "ATI": 9.2}

# Li 2019, section 3.5: an epoch of Top-3 over all permutations, in seconds ("5 days").
LISTNET_EXACT_TOP_3 = 5 * 24 * 3600.0
# Section 4.3.4: bits in multiplications with which at most 4 % of the accuracy is lost, and with which none is.
LISTNET_BITS_WITHIN_4_PERCENT = {"direct": 27, "adaptive": 10, "batch": 8}
LISTNET_BITS_WITHOUT_LOSS = {"direct": 36, "adaptive": 22}
# Table 4.3: the accuracy that batches of 8 bits keep of float32's, on the whole data.
LISTNET_BATCH_8_BITS = 0.9399
# Section 4.3.4: NDCG@10 of RankSVM, RankBoost, ListNet and AdaRank on LETOR 4.0, lowest and highest.
LISTNET_NDCG_10 = (0.34, 0.40)

# Tadros 2015, chapter 5: documents from which on the GPU is faster than the CPU.
SEARCH_CROSSINGS = {"R-S-BLG": 1_000, "R-M-BGD": 500, "R-L-D": 50}
# R-L-D: ms of 500 documents on the CPU; and at 10,000 documents, how many times faster the GPU is.
SEARCH_CPU_MS = {"R-L-D": (500, 70.61)}
SEARCH_SPEEDUPS = {"R-L-D": 19.0}
# Abstract: the harmonic mean over rankers, at 10,000 documents.
SEARCH_MEAN_SPEEDUP = 8.8
# About Figure 5.2: the most that copies take of the GPU's time.
SEARCH_MOST_COPIES = {"R-S-BLG": 0.68}
# Section 5.1 (idle) and Table 4.1 (at most), in W.
SEARCH_WATTS = {
    "GTX 660 Ti (Kepler), idle": 19.35,
    "GTX 750 Ti (Maxwell), idle": 1.44,
    "whole system, idle": 67.0,
    "GTX 750 Ti, at most": 60.0,
    "Xeon W3690, at most": 130.0,
    "GTX 660 Ti, at most": 150.0,
}
