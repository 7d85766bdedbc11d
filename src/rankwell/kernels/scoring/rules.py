"""The rules of scoring that every device follows, as numbers that kernels can take."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

# Sums run in this order on every device: inputs are added one after another in runs of this length, from zero, and the
# sums of the runs likewise. With a fixed order a score has the same bits everywhere; runs allow work to be divided.
SUM_RUN = 32

# How a layer's sums become its outputs; a kernel gets the index in this list.
ACTIVATIONS = ("identity", "sigmoid", "relu", "tanh", "exp")
IDENTITY, SIGMOID, RELU, TANH, EXP = range(5)

# What a tree's column is made from: the unchanged feature; the same with zeros as missing values; 1 or 0 for being in a
# set of categories.
VALUE, ZERO_IS_MISSING, IN_CATEGORIES = range(3)

# LightGBM's bound: a value this near to zero is a zero (its kZeroThreshold, a float32 constant).
NEARLY_ZERO = np.float32(1e-35)

# A node to walk by is a word of fields, the lowest first: the bin it compares with (BIN_BITS bits), its left child (the
# right one is next to it), the bin column. A leaf's word points to itself and has the largest bin: no bin is above it.
BIN_BITS = 8
LEAF_BIN = 255

# The most numbers on the stack of an expression.
LARGEST_STACK = 32


class Operation(IntEnum):
    """The instructions of expressions, for a stack machine: the first two push their operand, the others replace their
    arguments on the stack by the result.
    """

    CONSTANT = 0
    FEATURE = 1
    ADD = 2
    SUBTRACT = 3
    MULTIPLY = 4
    DIVIDE = 5
    POWER = 6
    NEGATE = 7
    LESS = 8
    LESS_EQUAL = 9
    GREATER = 10
    GREATER_EQUAL = 11
    EQUAL = 12
    NOT_EQUAL = 13
    MINIMUM = 14
    MAXIMUM = 15
    ABSOLUTE = 16
    LOG = 17
    LOG1P = 18
    EXP = 19
    SQRT = 20
    IF = 21
    MISSING = 22
