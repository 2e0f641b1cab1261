from gateway.pravega.controller.directory import Directory


def test_names_are_in_order_and_follow_each_other() -> None:
    directory: Directory[int] = Directory()
    for number, name in enumerate(("b", "d", "a", "b", "c")):
        directory[name] = number
    del directory["c"]

    assert list(directory.items()) == [("a", 2), ("b", 3), ("d", 1)]
    assert [directory.after(name) for name in ("", "a", "b", "c", "d")] == [
        "a",
        "b",
        "d",
        "d",
        None,
    ]
    assert ("b" in directory, "c" in directory, len(directory)) == (True, False, 3)
