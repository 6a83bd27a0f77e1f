"""scikit-learn's own checks of an estimator, all of them, with the exceptions listed and reasoned."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dendritree.sklearn import DendriticClassifier, DendriticRegressor

EXPECTED_FAILED_CHECKS = {
    f"check_sample_weight_equivalence_on_{kind}_data": (
        "a row twice and a row of weight 2 give other batches, and batches are what is trained on"
    )
    for kind in ("dense", "sparse")
}
"""As scikit-learn lists it for its own SGD estimators. A weight of 0 is no row at all: test_estimators holds that."""

# Smaller and faster than by default: what is checked here is the interface
QUICK = {"budget": 400, "epochs": 24, "lr": 0.05, "random_state": 0}
ESTIMATORS = [DendriticClassifier(**QUICK), DendriticRegressor(**QUICK)]


@pytest.mark.filterwarnings("default")  # as scikit-learn runs them
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda _: EXPECTED_FAILED_CHECKS)
def test_scikit_learns_checks(estimator, check):
    check(estimator)
