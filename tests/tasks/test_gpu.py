"""The same promises on a GPU. CI has none: run by hand."""

from pathlib import Path

import numpy as np
import pytest
import torch
from labelled_data import claims, opinions, people

from polyseme import Classifier, Pairs, Tagger
from polyseme.tasks.features.feature_cache import FeatureCache
from polyseme.tasks.fitting.loop import FitSettings
from polyseme.tasks.tagging.crf import Crf
from polyseme.tasks.tagging.schemes import constraints, inside_labels

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
TINY = Path(__file__).parents[1] / "fixtures" / "tiny"
QUICK = FitSettings(epochs=3, epoch_steps=30, rate=0.02, batch_size=16, average=0.5)


@pytest.mark.parametrize(
    ("kind", "data", "settings"),
    [
        (Tagger, people, {"where": "both"}),
        (Tagger, people, {"where": "taglm", "layers": 2}),
        (Tagger, people, {"fine_tune": True}),
        (Classifier, opinions, {}),
        (Classifier, opinions, {"kind": "linear"}),
        (Pairs, claims, {}),
    ],
)
def test_what_was_fitted_on_a_gpu_answers_there_and_on_the_cpu(kind, data, settings, tmp_path):
    train, dev = data(60), data(20, seed=1)
    cells = {"cells": 16, "mix": kind.settings_kind().mix, **settings}
    model = kind(
        TINY, settings=kind.settings_kind(**cells), fit_settings=QUICK, cache=FeatureCache(tmp_path), device="cuda"
    )
    model.fit(*train, dev=dev, checkpoint=tmp_path / "fitting")
    assert all(weight.is_cuda for weight in model.network_.parameters())
    model.save(tmp_path / "model")
    there, here = model.predict_proba(dev[0]), kind.load(tmp_path / "model").predict_proba(dev[0])
    for one, other in zip(there, here, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-2)  # vectors are rounded to 16 bits on the way
    resumed = kind(
        TINY, settings=kind.settings_kind(**cells), fit_settings=QUICK, cache=FeatureCache(tmp_path), device="cuda"
    )
    assert not list(resumed.fitting(*train, dev=dev, checkpoint=tmp_path / "fitting"))
    assert resumed.predict(dev[0]) == model.predict(dev[0])


def test_the_sum_over_all_sequences_is_that_of_the_cpu():
    labels = list(inside_labels(["A", "B", "C"]))
    crf = Crf(constraints(labels, "BIOES"))
    emissions = torch.randn(5, 37, len(labels)) * 3
    mask = torch.arange(37) < torch.tensor([37, 1, 2, 20, 33]).unsqueeze(1)
    expected = crf.log_partition(emissions, mask)
    found = crf.to("cuda").log_partition(emissions.cuda(), mask.cuda())
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-4)
