"""The data set's terms in the words that travel with everything derived from it: adapters, samples, tracks."""


def terms(*, synthetic: bool) -> str:
    """Where a thing comes from and what that allows."""
    if synthetic:
        return "Made from SYNTHETIC data: it says nothing of real lectures or real raters."
    return (
        "Derived from the AD4Edu preference data. The data set's card forbids redistribution of the lecture material and of what "
        "derives from it: keep this private unless you hold the rights."
    )
