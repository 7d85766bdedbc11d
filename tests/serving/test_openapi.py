"""The API does what its OpenAPI description says, for generated requests, right ones and wrong ones."""

from contextlib import nullcontext, suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from tests.serving.served_index import N_CANDIDATES
from tests.serving.server_process import serving

schemathesis = pytest.importorskip("schemathesis")
# A name of no ranker, a query of wrong syntax: the description cannot say that these are refused.
positive_data_acceptance = pytest.importorskip("schemathesis.specs.openapi.checks").positive_data_acceptance
not_a_server_error = pytest.importorskip("schemathesis.checks").not_a_server_error


@pytest.mark.filterwarnings("ignore")
def test_every_call_keeps_to_its_description(served, tmp_path):
    folder, rankers = served
    options = ["--candidates", N_CANDIDATES, "--timeout", 30000]
    options += ["--use-log", tmp_path / "use.jsonl", "--judgments", tmp_path / "votes.qrels"]
    options += [part for path in rankers.values() for part in ("--ranker", path)]
    with serving(folder, *options, RANKWELL_TOKEN="secret") as (process, client):
        schema = schemathesis.openapi.from_url(f"{client.address}/openapi.json")
        operations = [result.ok() for result in schema.get_all_operations()]
        assert len(operations) == 15
        for operation in operations:
            for mode in schemathesis.GenerationMode:
                with suppress(Unsatisfiable) if mode.is_negative else nullcontext():  # nothing in it can be wrong
                    check_operation(operation, mode)
        assert process.poll() is None


def check_operation(operation, mode):
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=10, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    def check(case):
        response = case.call(timeout=30)
        excluded = [positive_data_acceptance]
        if response.status_code == 503 and has_short_deadline(case) and "retry-after" in response.headers:
            excluded.append(not_a_server_error)  # the deadline passed, and the server said so; its words are checked
        case.validate_response(response, excluded_checks=excluded)

    check()


def has_short_deadline(case) -> bool:
    given = (case.query or {}).get("timeout_ms")
    return isinstance(given, (int, float)) and 0 < given < 1000
