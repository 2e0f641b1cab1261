"""The cases name each other apart and send every request that Pravega 0.13.0 knows."""

from compat.pravega.case import Action, Case, Step
from compat.pravega.cases import CASES
from compat.pravega.expected import EXPECTED, expected_of
from hutch.pravega.commands import COMMANDS, CommandSender


def steps(case: Case) -> list[Step]:
    return [step for step in case.steps if step.action is not Action.DROP]


def test_no_two_cases_have_one_name() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_each_request_is_sent_and_answered() -> None:
    # Messages that a block is made of come inside its bytes.
    inside = {"Event", "PartialEvent", "Padding"}
    requests = {
        command.message
        for command in COMMANDS
        if command.sender & CommandSender.CLIENT and command.name not in inside
    }

    sent = {type(sent) for case in CASES for step in steps(case) for sent in step.sends}

    assert requests - sent == set()


def test_each_answer_that_0_13_gives_without_tokens_is_waited_for() -> None:
    # Without tokens, and with one server, these do not come.
    never = {"WrongHost", "AuthTokenCheckFailed", "OffsetLocated"}
    replies = {
        command.name
        for command in COMMANDS
        if command.sender & CommandSender.SERVER and command.name not in never
    }

    waited_for = {kind for case in CASES for step in case.steps for kind in step.kinds}

    assert replies - waited_for == set()


def test_a_case_that_waits_for_nothing_after_its_last_request_is_none() -> None:
    silent = [
        case.name
        for case in CASES
        if case.steps[-1].action is Action.SEND and not case.steps[-1].gives
    ]

    assert silent == []


def test_each_meant_difference_is_one_of_a_case() -> None:
    assert expected_of(CASES) == list(EXPECTED)
    assert expected_of([]) == []
