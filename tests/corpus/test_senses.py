"""Word sense induction: uses that differ are separated, those that do not are not."""

import numpy as np
import pytest
from sensible_embedder import MONEY, RIVER, SENTENCES, Sensible

from polyseme.corpus.senses import ClusterSettings, cluster_uses, collocates, draw_senses, silhouette
from polyseme.corpus.uses import Use, Uses, embed_uses, find_uses
from polyseme.errors import ConfigError, InputError
from polyseme.plots import save_figure


@pytest.fixture(scope="module")
def uses():
    return embed_uses(Sensible(), find_uses(SENTENCES, "bank"))


def cloud(centres, seed=0, each=20):
    """Uses whose vectors lie around some centres."""
    random = np.random.default_rng(seed)
    rows = np.concatenate([np.array(centre) + random.standard_normal((each, 8)) * 0.3 for centre in centres])
    words = [(f"word{number}",) for number in range(len(rows))]
    number = np.arange(len(rows))
    return Uses(words, number, np.zeros_like(number), [rows.astype(np.float32)], (0,), 1)


def test_two_senses_are_two_clusters(uses):
    senses = cluster_uses(uses, "top")
    assert sorted(cluster.size for cluster in senses.clusters) == [4, 4]
    groups = {" ".join(use.words): label for use, label in zip(uses, senses.labels, strict=True)}
    assert len({groups[line] for line in RIVER}) == len({groups[line] for line in MONEY}) == 1
    assert groups[RIVER[0]] != groups[MONEY[0]]
    assert senses.silhouette is not None
    assert senses.silhouette > 0.8


@pytest.mark.parametrize("number", [2, 3, 4])
def test_the_number_of_clusters_is_found_by_silhouette(number):
    senses = cluster_uses(cloud(np.eye(8)[:number] * 5), 0, ClusterSettings(most=5))
    assert [cluster.size for cluster in senses.clusters] == [20] * number


def test_chance_alone_comes_close_where_there_are_no_clusters():
    few = ClusterSettings(most=3)
    lump = cluster_uses(cloud([np.ones(8)], each=100), 0, few)
    apart = cluster_uses(cloud(np.eye(8)[:3] * 5), 0, few)
    assert lump.silhouette == pytest.approx(lump.by_chance, abs=0.05)
    assert apart.silhouette > apart.by_chance + 0.2
    assert (apart.p, apart.is_evident) == (0.05, True)
    assert lump.p > 0.05
    assert not lump.is_evident


def test_few_uses_of_one_cloud_are_seldom_taken_for_senses():
    few = ClusterSettings(most=3)
    found = [cluster_uses(cloud([np.ones(8)], seed), 0, few).is_evident for seed in range(4)]
    assert sum(found) <= 1


def test_the_silhouette_is_that_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(0)
    for labels in ([0, 0, 1, 1, 2, 0, 1], [0, 0, 0, 0, 0, 0, 3], random.integers(4, size=50).tolist()):
        points = random.standard_normal((len(labels), 5))
        distances = metrics.pairwise_distances(points)
        expected = metrics.silhouette_score(distances, labels, metric="precomputed")
        assert silhouette(distances, np.array(labels)) == pytest.approx(expected, abs=1e-9)


def test_the_number_of_clusters_can_be_given(uses):
    assert len(cluster_uses(uses, 1, ClusterSettings(clusters=3)).clusters) == 3


def test_vectors_that_know_no_context_are_one_cluster(uses):
    senses = cluster_uses(uses, 0)
    assert (len(senses.clusters), senses.silhouette) == (1, None)
    with pytest.raises(InputError, match="8 uses have 1 different vectors"):
        cluster_uses(uses, 0, ClusterSettings(clusters=2))


def test_a_single_use_is_a_single_cluster():
    senses = cluster_uses(embed_uses(Sensible(), find_uses(SENTENCES, "nothing")))
    assert [cluster.size for cluster in senses.clusters] == [1]


def test_one_cluster_is_no_question():
    with pytest.raises(ConfigError, match="clusters must be 2 or more"):
        ClusterSettings(clusters=1)


def test_typical_uses_are_the_ones_in_the_middle():
    uses = cloud(np.eye(8)[:2] * 5)
    senses = cluster_uses(uses, 0, ClusterSettings(examples=4))
    rows = uses.layers[0] / np.linalg.norm(uses.layers[0], axis=1, keepdims=True)
    for number, cluster in enumerate(senses.clusters):
        members = np.flatnonzero(np.array(senses.labels) == number)
        nearest = members[np.argsort(-(rows[members] @ rows[members].mean(axis=0)))[:4]]
        assert [use.word for use in cluster.typical] == [f"word{number}" for number in nearest]


def test_collocates_occur_around_these_and_not_around_others():
    here = [Use(("the", "bank", "of", "the", "river"), 1), Use(("the", "river", "bank"), 2)]
    there = [Use(("the", "bank", "has", "money"), 1), Use(("the", "bank", "lent", "money"), 1)]
    assert collocates(here, there) == ("river",)


def test_points_lie_in_the_plane_of_most_variance(uses):
    senses = cluster_uses(uses, "top")
    assert np.array(senses.points).shape == (8, 2)
    assert 0.9 < senses.shares[0] <= 1 + 1e-6
    np.testing.assert_allclose(np.mean(senses.points, axis=0), 0, atol=1e-5)


def test_a_picture_is_drawn(uses, tmp_path):
    save_figure(draw_senses(cluster_uses(uses), "bank", "sensible"), tmp_path / "bank.png")
    assert (tmp_path / "bank.png").stat().st_size > 5000
