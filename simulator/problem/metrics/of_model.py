"""Accuracy, area under the ROC curve, loss and objective of a model."""

from functools import partial

from ...parts.metrics import (
    CLASSES,
    LIKELIHOOD,
    MINIMUM,
    NON_NEGATIVE,
    OF_LOSS,
    TWO_CLASSES,
    Metric,
    Models,
    Takes,
)

FUNCTIONS = "stalesim.simulator.problem.metrics.functions"

fraction = partial(
    Metric,
    unit="fraction",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    takes=Takes.OUTPUTS,
    needs=(CLASSES,),
)
"""A metric of the outputs for classes that is a part of one."""
TEST_ACCURACY = fraction(
    "test_accuracy",
    f"{FUNCTIONS}:accuracy",
    meaning="of the test rows",
    label="Test accuracy",
)
WORKER_ACCURACY = fraction(
    "worker_accuracy",
    f"{FUNCTIONS}:accuracy",
    meaning="mean of the workers' own",
    models=Models.EACH_WORKER,
)
TEST_AUC = Metric(
    "test_auc",
    f"{FUNCTIONS}:area_under_roc_curve",
    meaning="area under the ROC curve, test rows",
    label="Test AUC",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    takes=Takes.OUTPUTS,
    needs=(CLASSES, TWO_CLASSES),
)
TEST_LOSS = Metric(
    "test_loss",
    f"{FUNCTIONS}:loss",
    meaning="mean over the test rows",
    label="Test loss",
    unit=OF_LOSS,
)
WORKER_LOSS = Metric(
    "worker_loss",
    f"{FUNCTIONS}:loss",
    meaning="mean of the workers' own",
    unit=OF_LOSS,
    models=Models.EACH_WORKER,
)
TEST_PERPLEXITY = Metric(
    "test_perplexity",
    f"{FUNCTIONS}:perplexity",
    meaning="exponential of the mean loss of the test rows",
    label="Test perplexity",
    unit="classes",
    bounds=NON_NEGATIVE,
    needs=(LIKELIHOOD,),
)
OBJECTIVE = Metric(
    "objective",
    f"{FUNCTIONS}:objective",
    meaning="F on all training rows, regularised",
    label="Objective",
    unit=OF_LOSS,
)
GRADIENT_NORM_SQUARED = Metric(
    "gradient_norm_squared",
    f"{FUNCTIONS}:gradient_norm_squared",
    meaning="squared norm of F's gradient",
    label="Squared norm of the gradient",
    bounds=NON_NEGATIVE,
    logarithmic=True,
)
OPTIMALITY_GAP = Metric(
    "optimality_gap",
    f"{FUNCTIONS}:optimality_gap",
    meaning="F minus its minimum",
    label="Optimality gap",
    bounds=NON_NEGATIVE,
    unit=OF_LOSS,
    logarithmic=True,
    needs=(MINIMUM,),
)
