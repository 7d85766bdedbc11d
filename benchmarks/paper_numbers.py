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
