"""The functions that an exported C file consists of, each written once. A file has those that it calls."""

from __future__ import annotations

STRUCTURES = """\
/* A node of a tree: left where the column's value is at most the threshold. A child c >= 0 is node c of the tree, c < 0
   is its leaf -1 - c. */
struct node {
    float threshold;
    int column;
    int left;
    int right;
    int missing_left;
};

/* The nodes and leaves of tree t begin at first_node and first_leaf. */
struct tree {
    int first_node;
    int n_nodes;
    int first_leaf;
};

/* What trees test: a column, 1 where zeros are missing values, 2 where it is a set of categories. */
struct tested {
    int column;
    int kind;
    int first_category;
    int n_categories;
};
"""

FUNCTIONS = {
    "sum_in_runs": """\
/* The sum, in runs of 32: the same order, and so the same bits, as in Rankwell. */
static double sum_in_runs(const double *values, int n)
{
    double total = 0.0;
    for (int first = 0; first < n; first += 32) {
        double run = 0.0;
        for (int i = first; i < n && i < first + 32; i++) run += values[i];
        total += run;
    }
    return total;
}
""",
    "linear_inputs": """\
static void linear_inputs(const float *columns, int n, const int *column, const double *scale, const double *offset,
                          const double *missing, double *out)
{
    for (int i = 0; i < n; i++) {
        const double x = columns[column[i]];
        out[i] = x != x ? missing[i] : scale[i] * x + offset[i];
    }
}
""",
    "log_linear_inputs": """\
static void log_linear_inputs(const float *columns, int n, const int *column, const double *scale, const double *offset,
                              const double *missing, double *out)
{
    for (int i = 0; i < n; i++) {
        const double x = columns[column[i]];
        out[i] = x > -1.0 ? scale[i] * log1p(x) + offset[i] : missing[i];
    }
}
""",
    "tree_inputs": """\
static float tested_value(const float *columns, struct tested test, const int *categories)
{
    const float x = columns[test.column];
    if (test.kind == 1 && fabsf(x) <= 1e-35f) return NAN;
    if (test.kind == 2 && x == x) {
        for (int i = 0; i < test.n_categories && x >= 0.0f && x < 2147483648.0f; i++)
            if (categories[test.first_category + i] == (int)x) return 1.0f;
        return 0.0f;
    }
    return x;
}

static void tree_inputs(const float *columns, int n_trees, const struct tree *trees, const struct node *nodes,
                        const double *leaves, const struct tested *tests, const int *categories, double *out)
{
    for (int t = 0; t < n_trees; t++) {
        int place = trees[t].n_nodes > 0 ? 0 : -1;
        while (place >= 0) {
            const struct node node = nodes[trees[t].first_node + place];
            const float x = tested_value(columns, tests[node.column], categories);
            place = (x != x ? node.missing_left : x <= node.threshold) ? node.left : node.right;
        }
        out[t] = leaves[trees[t].first_leaf - 1 - place];
    }
}
""",
    "identity": """\
static double identity(double x) { return x; }
""",
    "sigmoid": """\
static double sigmoid(double x) { return x >= 0.0 ? 1.0 / (1.0 + exp(-x)) : exp(x) / (1.0 + exp(x)); }
""",
    "relu": """\
static double relu(double x) { return x > 0.0 ? x : 0.0; }
""",
    "exponential": """\
static double exponential(double x) { return x < 709.0 ? exp(x) : INFINITY; }
""",
    "dense_layer": """\
static void dense_layer(const double *values, int n_in, const double *weights, const double *bias, int n_out,
                        double (*activation)(double), double *out)
{
    for (int unit = 0; unit < n_out; unit++) {
        const double *own = weights + (size_t)unit * n_in;
        double total = 0.0;
        for (int first = 0; first < n_in; first += 32) {
            double run = 0.0;
            for (int i = first; i < n_in && i < first + 32; i++) run += own[i] * values[i];
            total += run;
        }
        out[unit] = activation(total + bias[unit]);
    }
}
""",
    "minimum": """\
static double minimum(double a, double b) { return a != a ? a : b != b ? b : a < b ? a : b; }
""",
    "maximum": """\
static double maximum(double a, double b) { return a != a ? a : b != b ? b : a > b ? a : b; }
""",
    "choose": """\
static double choose(double condition, double a, double b) { return fabs(condition) > 0.0 ? a : b; }
""",
    "is_missing": """\
static double is_missing(double x) { return x != x; }
""",
    "finite_or": """\
static double finite_or(double x, double otherwise) { return x - x == 0.0 ? x : otherwise; }
""",
    "query_ranges": """\
/* Of each feature over a query's documents: the lowest value (NaN if all are missing), and what to divide by. */
static void query_ranges(const float *rows, size_t n_documents, double *lowest, double *spread)
{
    for (int feature = 0; feature < N_FEATURES; feature++) {
        double low = NAN, high = NAN;
        for (size_t d = 0; d < n_documents; d++) {
            const double x = rows[d * N_FEATURES + feature];
            if (!(x >= low)) low = x == x ? x : low;
            if (!(x <= high)) high = x == x ? x : high;
        }
        lowest[feature] = low;
        spread[feature] = high - low > 0.0 ? high - low : INFINITY;
    }
}
""",
}
