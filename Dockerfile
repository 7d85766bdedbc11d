# The demo's search page: docker build -t rankwell-demo . && docker run --rm -p 8080:8080 rankwell-demo
FROM python:3.12-slim AS build
WORKDIR /source
COPY . .
# The wheel holds the kernels compiled, so that neither the demo nor the server compiles anything.
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
COPY --from=build /wheels /wheels
# What is installed is a file, which has no other version.
# hadolint ignore=DL3013
RUN wheel="$(echo /wheels/*.whl)" && pip install --no-cache-dir "${wheel}[serve]" && rm -r /wheels \
    && useradd --create-home --uid 1000 searcher
USER 1000
WORKDIR /home/searcher
RUN rankwell demo --quiet
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/readyz', timeout=2)"]
# The first ranker is the default: the Makefile says why it is this one.
CMD ["rankwell", "serve", "demo-output/index", "--host", "0.0.0.0", "--candidates", "50", \
     "--judgments", "votes.qrels", \
     "--ranker", "demo-output/ranksvm.rank", \
     "--ranker", "demo-output/lambdamart.rank", \
     "--ranker", "demo-output/rankboost.rank", \
     "--ranker", "demo-output/listnet.rank", \
     "--ranker", "demo-output/least-squares.rank"]
