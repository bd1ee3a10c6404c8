"""How sure a success rate is after so many tries."""

from math import sqrt

Z = 1.96
"""Standard normal quantile of a two-sided 95 % interval."""


def lower_bound(successes: int, failures: int) -> float:
    """Return the lower end (0..1) of the 95 % score interval of a success rate; 0 without a try.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal of the American
    Statistical Association 22 (1927), 209–212, without correction for continuity. Four successes in a row reach 0.5
    (0.510), two reach 0.3 (0.342); with one failure it takes seven and three, with two nine and five.
    """
    n = successes + failures
    if n == 0 or successes == 0:
        return 0.0
    rate = successes / n
    middle = rate + Z * Z / (2 * n)
    spread = Z * sqrt(rate * (1 - rate) / n + Z * Z / (4 * n * n))
    return (middle - spread) / (1 + Z * Z / n)
