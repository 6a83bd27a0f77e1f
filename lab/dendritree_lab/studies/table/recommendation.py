"""What a comparison on a table recommends: which network to keep, and whether dendrites help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dendritree.errors import check_one_of

from ..engine.statistics import Difference, paired_mean
from .controls import BOOSTING, IN_WORDS, FamilyScores, gain_over

ENOUGH_SPLITS = 5
"""With fewer splits, intervals are too wide to rule out a gain."""
KEEPS = ("best", "tree", "sparse", "dense", "linear")
"""Values of `keep`: the family of the model to keep, or `best`, which the comparison recommends."""


def is_preferred(first: FamilyScores, second: FamilyScores) -> bool:
    """Whether a family's mean is better than another's by more than one standard error of the difference.

    This selects the model to keep, also where the comparison is undecided. Only a 95% interval without 0 says that a
    family is *ahead*.
    """
    _, error = paired_mean(first.scores, second.scores, 1 / (len(first.scores) - 1))
    return gain_over(first, second).mean > error


def best_family(results: Sequence[FamilyScores]) -> str:
    """The network to keep: trees, or another one preferred to them; but linear if that is not preferred to it.

    Preferred as in `is_preferred`. If several are preferred to trees, the one with the best mean counts.
    """
    of = by_family(results)
    best = _first_choice(of)
    return best.family if is_preferred(best, of["linear"]) else "linear"


def _first_choice(of: Mapping[str, FamilyScores]) -> FamilyScores:
    """Trees, or the family preferred to them, before the comparison with linear."""
    better = [of[family] for family in ("sparse", "dense") if is_preferred(of[family], of["tree"])]
    return max(better, key=lambda each: each.mean if each.more_is_better else -each.mean, default=of["tree"])


def kept_family(keep: str, results: Sequence[FamilyScores]) -> str:
    """The family that a value of `KEEPS` selects."""
    return best_family(results) if check_one_of("keep", keep, KEEPS) == "best" else keep


def reason(keep: str, results: Sequence[FamilyScores]) -> str:
    """Why that family is kept, in a sentence."""
    of, best = by_family(results), best_family(results)
    if keep not in ("best", best):
        return f"Kept: {IN_WORDS[keep]}, as requested; the comparison recommends {IN_WORDS[best]}."
    why = "no other network is better on average by more than one standard error"
    if best == "linear":
        first = _first_choice(of).family
        why = f"{_are(first)} not better on average by more than one standard error, and it is simpler"
    elif best != "tree":
        why = _lead(of[best], of["tree"])
    return f"Kept: {IN_WORDS[best]}, trained on all rows: {why}."


def verdict(results: Sequence[FamilyScores]) -> str:
    """Whether dendrites help here, in a few sentences, starting with gradient boosting if it is better.

    The answer is `No` only if trees are decidedly worse than another model; without a decision it is `Not shown`.
    """
    of = by_family(results)
    best = of[best_family(results)]
    word, sentence = _among_networks(of, best.family)
    if BOOSTING not in of or not is_preferred(of[BOOSTING], best):
        return f"{word}: {sentence}"
    boosting = of[BOOSTING]
    behind = gain_over(boosting, of["tree"]).state == "ahead"
    answer = "No" if behind and not best.short else "Not shown"
    when = "after so few epochs, " if best.short else ""
    return (
        f"{answer}: {when}gradient boosting is {_lead(boosting, best)} "
        f"({boosting.show(boosting.mean)} against {boosting.show(best.mean)}). Among the networks, {sentence}"
    )


def by_family(results: Sequence[FamilyScores]) -> dict[str, FamilyScores]:
    """The results by the names of their families."""
    return {result.family: result for result in results}


def _are(family: str) -> str:
    return f"{IN_WORDS[family]} {'is' if family == 'dense' else 'are'}"


def _lead(first: FamilyScores, second: FamilyScores) -> str:
    """How much better a family is on average than another, and whether that is decided."""
    gain, other = gain_over(first, second), IN_WORDS[second.family]
    mean, low, high = (first.show(each) for each in (gain.mean, gain.low, gain.high))
    if gain.state == "ahead":
        return f"ahead of {other} by {mean} in {first.metric}"
    return f"better than {other} on average, by {mean} in {first.metric}, but undecided (95% interval {low} to {high})"


def _among_networks(of: Mapping[str, FamilyScores], best: str) -> tuple[str, str]:
    """A word and a sentence on whether trees are better than their controls."""
    tree = of["tree"]
    gains = {family: result.gain.state for family, result in of.items() if result.gain is not None}
    learned = [IN_WORDS[family] for family, each in of.items() if family != BOOSTING and _learned(each.learned)]
    behind = " and ".join(IN_WORDS[family] for family in ("sparse", "dense", "linear") if gains[family] == "behind")
    wanted = [f"{ENOUGH_SPLITS} splits or more"] if len(tree.scores) < ENOUGH_SPLITS else []
    wanted += ["as many epochs as `auto` uses"] if tree.short else []
    remedy = f" To find out, compare with {' and '.join(wanted)}." if wanted else ""
    linear = IN_WORDS["linear"]
    if not learned and not wanted:
        return "Not shown", "no model is better than guessing here. More rows or other columns are needed."
    if behind and tree.short:
        return "Not shown", f"after so few epochs, trees are worse than {behind}.{remedy}"
    if behind:
        return "No", f"on this table, trees are worse than {behind}."
    simpler = next((each for each in ("baseline", "linear") if gains[each] != "ahead"), None)
    if simpler and wanted:
        return "Not shown", f"a comparison this small cannot distinguish trees from {IN_WORDS[simpler]}.{remedy}"
    if simpler == "baseline":
        return "Not shown", f"trees are not significantly better than guessing here, unlike {', '.join(learned)}."
    if simpler == "linear":
        advice = " Use that; it is simpler." if best == "linear" else ""
        return "Not shown", f"trees are not significantly better than {linear} here.{advice}"
    if gains["sparse"] == gains["dense"] == "ahead":
        return "Yes", "trees are better here than every control of the same size."
    if gains["sparse"] == "ahead":
        part = "trees beat sparse neurons without dendrites here; a dense MLP of the same size may be as good."
        return "In part", part + remedy
    if gains["dense"] == "ahead":
        part = "trees beat the dense MLP of the same size here, but sparse neurons without dendrites may be as good."
        return "In part", part + remedy
    part = "trees, sparse neurons and a dense MLP of the same size are about equally good here."
    return "Not shown", part + remedy


def _learned(gain: Difference | None) -> bool:
    return gain is not None and gain.state == "ahead"
