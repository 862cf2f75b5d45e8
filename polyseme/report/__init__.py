"""The report: what is said of contextual word vectors, claim by claim, tested on a model of yours.

A *part* measures something and gives plain numbers, which are kept; a *claim* reads what its parts found and tells it;
the page is written from that. So a part is measured once, whoever asks for it, and an interruption costs one part.
"""
