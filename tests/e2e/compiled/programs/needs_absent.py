import a_module_nobody_has  # here


def make():
    return a_module_nobody_has.step, ()
