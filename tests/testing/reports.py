"""Reading what `cscnn.testing.conformance.failures` returns."""


def failed_tests(messages):
    """Names of failed tests without their arguments."""
    return {name.partition("[")[0] for name in messages}


def message_of(messages, failed):
    """What the first of some failed tests says."""
    return next(text for name, text in messages.items() if name.startswith(tuple(failed)))
