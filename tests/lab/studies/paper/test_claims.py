"""The paper's claims, evaluated on trials that were made to say yes, no, perhaps, or nothing."""

import dataclasses

import pytest
from made_trials import scored_trials

from dendritree_lab.studies.paper.claims import CLAIMS, claims
from dendritree_lab.studies.paper.spec import TableRow

MATCHES = {
    ("multiclass", 2): [("mlp", 30), ("perceptrons", 0)],
    ("multiclass", 4): [("mlp", 14), ("mlp", 16), ("perceptrons", 0)],
    ("multiclass", 32): [("mlp", 11), ("perceptrons", 0)],
}
MODELS = [("mln", 2), ("mln", 4), ("mln", 32), ("mlp", 30), ("mlp", 14), ("mlp", 16), ("mlp", 11), ("perceptrons", 0)]
# As the paper says: b = 2 behind its control, b = 4 and 32 ahead, dropout adds 5 points.
PAPER = dict(zip(MODELS, (0.59, 0.69, 0.79, 0.65, 0.60, 0.61, 0.58, 0.70), strict=True))
NOISE = (-0.01, -0.005, 0.0, 0.005, 0.01)


def run(means=PAPER, *, dropouts=(0.0, 0.1, 0.4), gain=0.05, noise=NOISE, train=None, protocol="paper", test=False):
    """Trials of every model; 0.4 has the lowest loss of all dropouts above 0."""
    trials = []
    for (network, size), mean in means.items():
        for dropout in dropouts:
            row = TableRow(f"table-{network}", "multiclass", network, size, dropout)
            accuracy = mean + gain * (dropout == 0.4)
            trials += scored_trials(
                row,
                [accuracy + deviation for deviation in noise],
                protocol=protocol,
                loss=1.0 - dropout,
                train_acc=0.95 if train is None else accuracy + train[network],
                test=test,
            )
    return trials


def outcomes(trials, matches=MATCHES):
    return {verdict.claim: verdict.outcome for verdict in claims(trials, matches)}


def verdict_on(claim, trials):
    return next(verdict for verdict in claims(trials, MATCHES) if verdict.claim == claim)


def test_every_claim_holds_where_the_trials_say_what_the_paper_says():
    assert outcomes(run()) == dict.fromkeys(CLAIMS, "holds")


def test_every_claim_falls_where_they_say_the_opposite():
    opposite = {model: 1.4 - mean for model, mean in PAPER.items()}
    gaps = {"mln": 0.5, "mlp": 0.1, "perceptrons": 0.1}
    assert outcomes(run(opposite, gain=-0.05, train=gaps)) == dict.fromkeys(CLAIMS, "does not hold")


def test_noise_leaves_every_claim_undecided():
    loud = [40 * deviation for deviation in NOISE]
    assert outcomes(run(noise=loud)) == dict.fromkeys(CLAIMS, "undecided")


def test_one_trial_a_row_decides_nothing_and_says_why():
    verdicts = claims(run(noise=(0.0,)), MATCHES)
    assert {verdict.outcome for verdict in verdicts} == {"undecided"}
    assert all("too few trials" in verdict.evidence for verdict in verdicts)


# ------------------------------------------------------------------------------------------- what decides which claim


def test_one_lost_comparison_is_enough_for_a_claim_to_fall():
    verdict = verdict_on("beats-control", run(PAPER | {("mlp", 16): 0.75}))
    assert verdict.outcome == "does not hold"
    assert verdict.evidence.startswith("Of 6 comparisons, 4 won, 2 lost, 0 undecided: ")
    assert "dendritic b=4 p=0 against MLP h=16 p=0 -6.0 points (p < 0.001)" in verdict.evidence


def test_perceptrons_are_told_and_do_not_decide():
    verdict = verdict_on("beats-control", run(PAPER | {("perceptrons", 0): 0.9}))
    assert verdict.outcome == "holds"
    assert "; beside the claim: dendritic b=4 p=0 against perceptrons p=0 -21.0 points (p < 0.001)" in verdict.evidence
    assert all(test.against.size for test in verdict.comparisons)
    without = {model: mean for model, mean in PAPER.items() if model[1]}
    assert "beside" not in verdict_on("beats-control", run(without)).evidence


def test_dropout_compares_a_tree_with_itself_at_the_dropout_of_the_lowest_loss():
    verdict = verdict_on("dropout", run())
    pairs = [(test.row.size, test.row.dropout, test.against.size, test.against.dropout) for test in verdict.comparisons]
    assert pairs == [(2, 0.4, 2, 0.0), (4, 0.4, 4, 0.0), (32, 0.4, 32, 0.0)]
    assert [test.difference for test in verdict.comparisons] == pytest.approx([0.05] * 3)


def test_branching_goes_step_by_step_with_and_without_dropout():
    verdict = verdict_on("branching", run())
    steps = [(test.row.size, test.against.size, test.row.dropout) for test in verdict.comparisons]
    assert steps == [(4, 2, 0.0), (32, 4, 0.0), (4, 2, 0.4), (32, 4, 0.4)]


def test_overfitting_is_the_gap_of_training_and_validation():
    means = dict.fromkeys(PAPER, 0.6)  # equal accuracies: only the gaps differ
    less = verdict_on("overfitting", run(means, train={"mln": 0.1, "mlp": 0.3, "perceptrons": 0.0}))
    assert less.outcome == "holds"
    assert {test.measure for test in less.comparisons} == {"gap"}
    assert [test.difference for test in less.comparisons] == pytest.approx([0.2] * 6)
    assert "gap of MLP h=11 p=0 against dendritic b=32 p=0 +20.0 points" in less.evidence
    more = verdict_on("overfitting", run(means, train={"mln": 0.3, "mlp": 0.1, "perceptrons": 0.0}))
    assert more.outcome == "does not hold"


def test_p_values_are_corrected_over_the_claim():
    verdict = verdict_on("beats-control", run(noise=[3 * deviation for deviation in NOISE]))
    smallest = min(verdict.comparisons, key=lambda each: each.test.p)
    assert smallest.corrected_p == pytest.approx(6 * smallest.test.p)


# -------------------------------------------------------------------------------------------------------- partial runs


def test_without_controls_only_what_trees_say_of_themselves_is_judged():
    trees = {model: mean for model, mean in PAPER.items() if model[0] == "mln"}
    assert outcomes(run(trees)) == {
        "beats-control": "not run",
        "small-branching": "not run",
        "dropout": "holds",
        "branching": "holds",
        "overfitting": "not run",
    }
    assert verdict_on("beats-control", run(trees)).evidence == "None of the 6 comparisons was run."


def test_a_missing_comparison_keeps_a_claim_open_though_all_others_were_won():
    verdict = verdict_on("beats-control", run(dropouts=(0.0,)))
    assert verdict.outcome == "undecided"
    assert verdict.evidence.startswith("Of 6 comparisons, 3 won, 0 lost, 0 undecided and 3 not run: ")
    assert outcomes(run(dropouts=(0.0,)))["dropout"] == "not run"


def test_each_protocol_and_task_has_its_own_verdicts():
    matches = {**MATCHES, ("cnn", 2): [("conv-mlp", 29)], ("cnn", 16): [("conv-mlp", 11)]}
    verdicts = claims(run() + run(protocol="full", test=True), matches)
    places = [(protocol, task) for protocol in ("full", "paper") for task in ("multiclass", "cnn") for _ in CLAIMS]
    assert [(verdict.protocol, verdict.task) for verdict in verdicts] == places
    assert {verdict.outcome for verdict in verdicts if verdict.task == "cnn"} == {"not run"}
    assert [verdict.statement for verdict in verdicts[:5]] == list(CLAIMS.values())


def test_a_row_in_two_tables_counts_once():
    trials = run()
    twins = [
        dataclasses.replace(trial, key=trial.key | {"table": "z-again"}) for trial in trials if not trial.row.dropout
    ]
    once, twice = claims(trials, MATCHES), claims(trials + twins, MATCHES)
    assert [v.evidence for v in once] == [v.evidence for v in twice]
