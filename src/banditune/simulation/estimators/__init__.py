"""Sufficient statistics of policies in scalar code: arm totals, ridge regression, logistic regression."""
