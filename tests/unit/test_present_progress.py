"""Long work says what it does, also where nobody watches."""

from chipwise.present import progress


def test_a_compile_is_announced_in_a_log_once_it_takes_long_and_told_again_now_and_then(capsys):
    with progress.target_stages("checking") as tell:
        for seconds in (0.0, 1.0, 2.5, 5.5, 6.0, 30.0, 61.0, 66.0, 67.0):
            tell("v5e:8", "compiling", seconds)
        tell("h100:8", "compiling", 1.0)  # in the cache
        tell("v6e:8", "compiling", 5.0)
    assert capsys.readouterr().err.splitlines() == [
        "checking v5e:8: compiling, 6 s so far; a whole model takes minutes, and no time when it is asked again",
        "checking v5e:8: compiling, 66 s so far",
        "checking v6e:8: compiling, 5 s so far; a whole model takes minutes, and no time when it is asked again",
    ]
