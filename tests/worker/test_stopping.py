"""The flag that ends work, in one process or in all of them."""

import os

from worker.reporter import StopFlag


def in_a_child(action) -> int:
    child = os.fork()
    if child == 0:
        os._exit(int(action()))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_child_sees_the_flag_its_parent_raises() -> None:
    flag = StopFlag()
    assert in_a_child(flag.is_set) == 0
    flag.set()
    assert in_a_child(flag.is_set) == 1


def test_a_child_told_to_stop_does_not_stop_its_siblings() -> None:
    flag = StopFlag()
    in_a_child(lambda: flag.set_here() or flag.is_set())
    assert not flag.is_set()
    assert in_a_child(flag.is_set) == 0


def test_a_process_may_go_on_after_it_was_told_to_stop_one_thing() -> None:
    flag = StopFlag()
    flag.set_here()
    assert flag.is_set()
    flag.clear_here()
    assert not flag.is_set()
    flag.set()
    flag.clear_here()
    assert flag.is_set()
