from compat.bench.connection import Address
from compat.bench.jobs import Job


def test_a_job_survives_the_pipe() -> None:
    job = Job(work="drain", address=Address("h", 1, "u", "p"), pids=(3, 4), check_all=True)
    assert Job.from_json(job.to_json()) == job
