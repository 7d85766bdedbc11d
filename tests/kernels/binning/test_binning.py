"""The binning kernels against their slow twins: bin(x) > b exactly where x > θ_b, whatever float32 x is."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwell.kernels.binning import reference
from rankwell.kernels.binning.binning import fill_bins, find_quantiles, find_ranges, find_width_thresholds
from rankwell.kernels.binning.bins import TABLE_WIDTH, WidthRule, threshold_rule
from rankwell.kernels.binning.quantiles import sort_floats
from rankwell.kernels.threads import kernel_threads

LARGEST = float(np.finfo(np.float32).max)
SMALLEST = float(np.finfo(np.float32).smallest_subnormal)

finite_floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
any_floats = st.floats(width=32)


def rule_by_width(low, high, n_value_bins):
    """What Binner does for one feature between `low` and `high`: the rule, and the thresholds it claims."""
    origin, scale, top = np.zeros((3, 1))
    if high > low:
        origin[0], scale[0], top[0] = low, n_value_bins / (high - low), n_value_bins
    else:
        top[0] = 1
    table = np.full((1, TABLE_WIDTH), np.inf, dtype=np.float32)
    rule = WidthRule(origin, scale, top)
    find_width_thresholds(rule, table)
    return rule, table[0, : int(top[0])]


def rows_of(values):
    return np.asarray(values, dtype=np.float32).reshape(-1, 1)


def bins_of(values, rule):
    features = rows_of(values)
    out = np.empty(features.shape, dtype=np.uint8)
    fill_bins(features, np.arange(len(features)), rule, "rows", 0, out)
    return out[:, 0]


def table_of(thresholds):
    table = np.full((1, TABLE_WIDTH), np.inf, dtype=np.float32)
    table[0, : len(thresholds)] = thresholds
    return table


def with_neighbours(thresholds):
    """The thresholds, the float32 on either side of each, and the values that are apt to go wrong."""
    at = np.asarray(thresholds, dtype=np.float32)
    with np.errstate(over="ignore"):  # next to the largest float32 is infinity, and it must be right there too
        around = [at, np.nextafter(at, np.float32(-np.inf)), np.nextafter(at, np.float32(np.inf))]
    awkward = [np.nan, -np.inf, np.inf, -0.0, 0.0, SMALLEST, -SMALLEST, LARGEST, -LARGEST, 1.0, -1.0]
    return np.concatenate([*around, np.array(awkward, dtype=np.float32)])


class TestSearch:
    @settings(deadline=None)  # the first example compiles
    @given(st.lists(finite_floats, max_size=254), st.lists(any_floats, max_size=70))
    def test_bin_is_the_number_of_thresholds_below(self, inner, values):
        thresholds = np.array([-np.inf, *sorted(inner)], dtype=np.float32)
        tried = np.concatenate([np.array(values, dtype=np.float32), with_neighbours(thresholds)])
        got = bins_of(tried, threshold_rule(table_of(thresholds)))
        np.testing.assert_array_equal(got, reference.bins_of_values(tried, thresholds))

    def test_by_hand(self):
        got = bins_of([np.nan, -5.0, 1.0, 1.5, 2.0, 9.0], threshold_rule(table_of([-np.inf, 1.0, 2.0])))
        assert got.tolist() == [0, 1, 1, 2, 2, 3]

    def test_a_full_table_reaches_bin_255(self):
        thresholds = np.array([-np.inf, *range(254)], dtype=np.float32)
        got = bins_of([np.nan, -1.0, 0.0, 0.5, 253.0, 253.5], threshold_rule(table_of(thresholds)))
        assert got.tolist() == [0, 1, 1, 2, 254, 255]

    def test_a_feature_never_seen_has_bin_0_only(self):
        assert bins_of([np.nan, 0.0, LARGEST], threshold_rule(table_of([]))).tolist() == [0, 0, 0]


class TestWidth:
    @settings(max_examples=150, deadline=None)
    @given(finite_floats, finite_floats, st.integers(1, 255), st.lists(any_floats, max_size=40))
    def test_the_formula_and_its_thresholds_say_the_same(self, one, other, n_value_bins, values):
        low, high = sorted((one, other))
        rule, thresholds = rule_by_width(low, high, n_value_bins)
        inside = np.linspace(low, high, 50).astype(np.float32)
        tried = np.concatenate([np.array(values, dtype=np.float32), inside, with_neighbours(thresholds)])
        np.testing.assert_array_equal(bins_of(tried, rule), reference.bins_of_values(tried, thresholds))

    @pytest.mark.parametrize(
        ("low", "high"),
        [
            (-LARGEST, LARGEST),  # the difference overflows float32
            (0.0, SMALLEST),
            (-SMALLEST, SMALLEST),
            (0.0, 255 * SMALLEST),
            (1.0, float(np.nextafter(np.float32(1), np.float32(2)))),  # fewer floats between than bins
            (float(np.float32(1e30)), float(np.nextafter(np.float32(1e30), np.float32(2e30)))),
            (-1e30, 1e-30),
            (-1000.0, 1000.0),
            (0.0, 1.0),
        ],
    )
    def test_awkward_ranges(self, low, high):
        rule, thresholds = rule_by_width(low, high, 255)
        tried = np.concatenate([with_neighbours(thresholds), np.array([low, high], dtype=np.float32)])
        got = bins_of(tried, rule)
        np.testing.assert_array_equal(got, reference.bins_of_values(tried, thresholds))
        assert got[-2] == 1
        assert got[-1] == 255

    @settings(deadline=None)  # the first example compiles
    @given(finite_floats, finite_floats, st.integers(2, 255))
    def test_thresholds_are_equation_3_up_to_rounding(self, one, other, n_value_bins):
        low, high = sorted((np.float32(one), np.float32(other)))
        if low == high:
            return
        _, thresholds = rule_by_width(float(low), float(high), n_value_bins)
        exact = reference.width_thresholds(np.array([low, high]), n_value_bins)
        rounding = np.abs(exact[1:]) * 2.0**-23 + (float(high) - float(low)) * 2.0**-44 + SMALLEST
        assert (np.abs(thresholds[1:] - exact[1:]) <= rounding).all()

    def test_by_hand(self):
        rule, thresholds = rule_by_width(0.0, 10.0, 5)
        assert thresholds.tolist() == [-np.inf, 2.0, 4.0, 6.0, 8.0]
        assert bins_of([np.nan, -3.0, 0.0, 2.0, 2.5, 8.0, 10.0, 99.0], rule).tolist() == [0, 1, 1, 1, 2, 4, 5, 5]


class TestLayouts:
    @pytest.mark.parametrize("n_docs", [0, 1, 15, 16, 17, 63, 64, 65, 130])
    @pytest.mark.parametrize("n_features", [1, 15, 16, 17, 40])
    @pytest.mark.parametrize("by_width", [True, False])
    def test_the_three_layouts_hold_the_same_bins(self, n_docs, n_features, by_width):
        generator = np.random.default_rng(n_docs * 100 + n_features)
        features = generator.standard_normal((n_docs, n_features)).astype(np.float32)
        features[generator.random(features.shape) < 0.1] = np.nan
        origin, scale, top = (np.full(n_features, number) for number in (-2.0, 20.0, 100.0))
        table = np.full((n_features, TABLE_WIDTH), np.inf, dtype=np.float32)
        widths = WidthRule(origin, scale, top)
        find_width_thresholds(widths, table)
        rule = widths if by_width else threshold_rule(table)

        expected = np.array(
            [reference.bins_of_values(column, row[:100]) for column, row in zip(features.T, table, strict=True)]
        ).T.reshape(n_docs, n_features)
        before = 3  # documents that are in `out` already
        rows = np.full((before + n_docs, n_features), 7, dtype=np.uint8)
        by_feature = np.full((n_features, before + n_docs + 5), 7, dtype=np.uint8)
        interleaved = np.full((-(-n_features // 16), before + n_docs, 16), 7, dtype=np.uint8)
        every = np.arange(n_docs)
        fill_bins(features, every, rule, "rows", before, rows)
        fill_bins(features, every, rule, "features", before, by_feature)
        fill_bins(features, every, rule, "interleaved16", before, interleaved)

        np.testing.assert_array_equal(rows[before:], expected)
        np.testing.assert_array_equal(by_feature[:, before : before + n_docs], expected.T)
        flat = interleaved.transpose(1, 0, 2).reshape(before + n_docs, -1)
        np.testing.assert_array_equal(flat[before:, :n_features], expected)
        assert (flat[before:, n_features:] == 0).all()
        for untouched in (rows[:before], by_feature[:, :before], by_feature[:, before + n_docs :], flat[:before]):
            assert (untouched == 7).all()


class TestRanges:
    @pytest.mark.parametrize("n_docs", [0, 1, 63, 64, 65, 1000])
    def test_smallest_and_largest_without_the_missing(self, n_docs):
        generator = np.random.default_rng(n_docs)
        features = generator.standard_normal((n_docs, 3)).astype(np.float32)
        features[:, 1] = np.nan
        features[::2, 2] = np.nan
        lowest = np.full(3, np.inf, dtype=np.float32)
        highest = np.full(3, -np.inf, dtype=np.float32)
        find_ranges(features, lowest, highest)
        for feature in range(3):
            present = features[~np.isnan(features[:, feature]), feature]
            assert lowest[feature] == (present.min() if len(present) else np.inf)
            assert highest[feature] == (present.max() if len(present) else -np.inf)


class TestQuantiles:
    few_values = st.lists(st.one_of(st.integers(0, 12).map(float), st.just(np.nan)), max_size=200)
    many_values = st.lists(any_floats.filter(lambda x: not np.isinf(x)), max_size=200)

    @staticmethod
    def thresholds_of(features, n_value_bins, rows=None):
        table = np.full((features.shape[1], 256), np.inf, dtype=np.float32)
        numbers = np.zeros(features.shape[1], dtype=np.int64)
        rows = np.arange(len(features)) if rows is None else rows
        find_quantiles(features, rows, n_value_bins, table, numbers)
        return [row[:number] for row, number in zip(table, numbers, strict=True)]

    @settings(max_examples=200, deadline=None)
    @given(st.one_of(few_values, many_values), st.integers(1, 20))
    def test_equals_the_reference(self, values, n_value_bins):
        column = np.array(values, dtype=np.float32)
        (got,) = self.thresholds_of(rows_of(column), n_value_bins)
        np.testing.assert_array_equal(got, reference.quantile_thresholds(column, n_value_bins))

    def test_real_sizes_equal_the_reference(self):
        generator = np.random.default_rng(5)
        bell = generator.standard_normal(30_000)
        features = np.stack(
            [bell, np.floor(np.exp(bell)), np.floor(np.exp(2 * bell - 3)), np.where(bell > 0.5, bell, 0)], axis=1
        ).astype(np.float32)
        for column, got in zip(features.T, self.thresholds_of(features, 255), strict=True):
            np.testing.assert_array_equal(got, reference.quantile_thresholds(column, 255))

    def test_only_the_chosen_rows_count(self):
        features = np.arange(40, dtype=np.float32).reshape(20, 2)
        got = self.thresholds_of(features, 255, rows=np.array([3, 4, 9]))
        assert [row.tolist() for row in got] == [[-np.inf, 7.0, 13.0], [-np.inf, 8.0, 14.0]]

    @settings(deadline=None)  # the first example compiles
    @given(st.lists(finite_floats, max_size=300))
    def test_radix_sort_sorts(self, values):
        numbers = np.array(values, dtype=np.float32)
        expected = np.sort(numbers)
        sort_floats(numbers)
        np.testing.assert_array_equal(numbers, expected)

    def test_radix_sort_of_many(self):
        bits = np.random.default_rng(0).integers(0, 2**32, 100_000, dtype=np.uint64).astype(np.uint32)
        numbers = bits.view(np.float32)
        numbers = numbers[np.isfinite(numbers)].copy()
        expected = np.sort(numbers)
        sort_floats(numbers)
        np.testing.assert_array_equal(numbers, expected)


class TestCutEvenly:
    @settings(deadline=None)  # the first example compiles
    @given(st.lists(st.integers(1, 50), min_size=1, max_size=120), st.integers(1, 30))
    def test_never_too_many_bins_and_always_in_order(self, counts, n_value_bins):
        ends = reference.cut_evenly(counts, n_value_bins)
        assert len(ends) <= n_value_bins - 1
        assert all(earlier < later for earlier, later in itertools.pairwise(ends))
        assert all(0 <= end < len(counts) - 1 for end in ends)
        if len(counts) <= n_value_bins:
            assert len(ends) == len(counts) - 1

    def test_equal_counts_make_equal_bins(self):
        assert reference.cut_evenly([1] * 100, 4) == [24, 49, 74]

    def test_a_heavy_value_gets_its_own_bin_and_the_light_ones_the_rest(self):
        # 90 zeros in front of 10 values once each, 6 bins: one for the zeros, five with two values each.
        assert reference.cut_evenly([90] + [1] * 10, 6) == [0, 2, 4, 6, 8]
        # The same with the heavy value last.
        assert reference.cut_evenly([1] * 10 + [90], 6) == [1, 3, 5, 7, 9]


def test_results_do_not_depend_on_the_number_of_threads():
    generator = np.random.default_rng(3)
    features = np.exp(generator.standard_normal((5000, 37))).astype(np.float32)
    results = []
    for n_jobs in (1, 2):
        with kernel_threads(n_jobs):
            lowest, highest = features[0].copy(), features[0].copy()
            find_ranges(features, lowest, highest)
            table = np.full((37, 256), np.inf, dtype=np.float32)
            numbers = np.zeros(37, dtype=np.int64)
            find_quantiles(features, np.arange(5000), 255, table, numbers)
            out = np.empty(features.shape, dtype=np.uint8)
            fill_bins(features, np.arange(5000), threshold_rule(table), "rows", 0, out)
            results.append([lowest.tobytes(), highest.tobytes(), table.tobytes(), numbers.tobytes(), out.tobytes()])
    assert results[0] == results[1]


@pytest.mark.slow
@pytest.mark.parametrize("by_width", [True, False])
def test_every_float32_there_is(by_width):
    """All 2³² of them, in ascending order: the bin rises by one after each threshold, and nowhere else."""
    rule, thresholds = rule_by_width(-1000.0, 3.5, 255)
    if not by_width:
        thresholds = np.sort(np.random.default_rng(0).standard_cauchy(255)).astype(np.float32)
        thresholds[0] = -np.inf
        rule = threshold_rule(table_of(thresholds))
    sixteen_times = type(rule)(*(np.repeat(part, 16, axis=0) for part in rule))
    chunk = 2**24
    for sign in (0, 2**31):
        for first in range(0, 2**31, chunk):
            values = np.arange(sign + first, sign + first + chunk, dtype=np.uint64).astype(np.uint32).view(np.float32)
            values = values[::-1].copy() if sign else values
            bins = np.empty((chunk // 16, 16), dtype=np.uint8)
            fill_bins(values.reshape(-1, 16), np.arange(len(bins)), sixteen_times, "rows", 0, bins)
            missing = np.isnan(values)
            assert not bins.ravel()[missing].any()
            present = values[~missing]
            rises = np.zeros(len(present) + 1, dtype=np.uint8)
            np.add.at(rises, np.searchsorted(present, thresholds, side="right"), 1)
            np.testing.assert_array_equal(bins.ravel()[~missing], np.cumsum(rises, dtype=np.uint8)[:-1])
