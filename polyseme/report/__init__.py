"""The report: common claims about contextual word vectors, each tested on a model of yours, as one HTML page.

A `Measurement` gives plain numbers, which are stored; a `Claim` judges the numbers of its measurements; the page is
written from the verdicts. So each measurement runs once, however many claims need it, and an interruption costs one.
"""
