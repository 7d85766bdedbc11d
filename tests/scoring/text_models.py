"""Model files of RankLib, svm_rank and LIBLINEAR, as those programs write them."""

LAMBDAMART = """\
## LambdaMART
## No. of trees = 2
## No. of leaves = 3
## No. of threshold candidates = 256
## Learning rate = 0.1
## Stop early = 100

<ensemble>
	<tree id="1" weight="0.5">
		<split>
			<feature>3 </feature>
			<threshold> 0.25 </threshold>
			<split pos="left">
				<feature>1 </feature>
				<threshold> -1.5 </threshold>
				<split pos="left">
					<output>2.0 </output>
				</split>
				<split pos="right">
					<output>-1.0 </output>
				</split>
			</split>
			<split pos="right">
				<output>4.0 </output>
			</split>
		</split>
	</tree>
	<tree id="2" weight="0.1">
		<split>
			<output>10.0 </output>
		</split>
	</tree>
</ensemble>
"""

_BAG = """\
<ensemble>
	<tree id="1" weight="1.0">
		<split>
			<feature>2 </feature>
			<threshold> 1.0 </threshold>
			<split pos="left">
				<output>{left} </output>
			</split>
			<split pos="right">
				<output>{right} </output>
			</split>
		</split>
	</tree>
</ensemble>
"""
RANDOM_FORESTS = (
    "## Random Forests\n## No. of bags = 2\n## Sub-sampling = 1.0\n\n"
    + _BAG.format(left=1.0, right=3.0)
    + "\n"
    + _BAG.format(left=2.0, right=8.0)
)

RANKBOOST = """\
## RankBoost
## Iteration = 4
## No. of threshold candidates = 10
1:0.5:0.75 3:-2.0:0.5 1:-1.0:0.25 2:-Infinity:0.125
"""

COORDINATE_ASCENT = """\
## Coordinate Ascent
## Restart = 5
## MaxIteration = 25
## StepBase = 0.05
## Regularized = false
## Slack = 0.001
1:0.5 2:-0.25 4:2.0
"""

LINEAR_REGRESSION = "## Linear Regression\n## Lambda = 1.0E-10\n0:1.5 1:0.5 2:-0.25 3:1.0E-1\n"

ADARANK = "## AdaRank\n## Iteration = 500\n## Train with enqueue: Yes\n2:0.5 1:0.25 2:0.5\n"

SVM_RANK = """\
SVM-light Version V6.20
0 # kernel type
3 # kernel parameter -d
1 # kernel parameter -g
1 # kernel parameter -s
1 # kernel parameter -r
empty# kernel parameter -u
4 # highest feature index
12 # number of training documents
2 # number of support vectors plus 1
0 # threshold b, each following line is a SV (starting with alpha*y)
1 1:0.5 2:-0.25 4:2 #
"""

LIBLINEAR = """\
solver_type L2R_L2LOSS_SVC_DUAL
nr_class 2
label 0 1
nr_feature 3
bias 1
w
0.5
-0.25
2
-1.5
"""

MODELS = {
    "lambdamart": LAMBDAMART,
    "forest": RANDOM_FORESTS,
    "rankboost": RANKBOOST,
    "coordinate ascent": COORDINATE_ASCENT,
    "linear regression": LINEAR_REGRESSION,
    "adarank": ADARANK,
    "svm_rank": SVM_RANK,
    "liblinear": LIBLINEAR,
}
