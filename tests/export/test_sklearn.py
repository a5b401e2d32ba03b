"""Networks in scikit-learn: its own checks of estimators, and its tools around them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators are for it")

from sklearn.base import clone
from sklearn.datasets import load_iris, make_regression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import genesis
from genesis import nn
from genesis.sklearn import Classifier, Regressor


@parametrize_with_checks([Classifier(), Regressor()])
@pytest.mark.filterwarnings("ignore")
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_pipeline_search_and_pickle(iris):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])
    pipeline = make_pipeline(StandardScaler(), Classifier(epochs=40))
    search = GridSearchCV(pipeline, {"classifier__lr": [1e-5, 3e-2], "classifier__module": [nn.Linear]}, cv=3)
    search.fit(X, names[y])
    assert search.best_params_["classifier__lr"] == 3e-2 and search.best_score_ > 0.85
    again = pickle.loads(pickle.dumps(search))
    assert (again.predict(X) == search.predict(X)).all()
    np.testing.assert_array_equal(again.predict_proba(X), search.predict_proba(X))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.85


def test_same_seed_same_numbers_and_the_stream_outside_stays(iris):
    X, y = iris
    before = genesis.get_rng_state()
    model = Classifier(lambda n, k: nn.Sequential(nn.Linear(n, 8), nn.Dropout(0.5), nn.Linear(8, k)), epochs=2)
    a, b = (clone(model).fit(X, y).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    assert genesis.equal(genesis.get_rng_state(), before)
    assert not np.array_equal(a, clone(model).set_params(seed=1).fit(X, y).predict_proba(X))


def test_partial_fits_are_a_fit(iris):
    X, y = iris
    whole = Classifier(epochs=3).fit(X, y)
    parts = Classifier()
    for _ in range(3):
        parts.partial_fit(X, y, classes=[0, 1, 2])
    np.testing.assert_array_equal(parts.predict_proba(X), whole.predict_proba(X))
    assert parts.history_ == whole.history_ and len(whole.history_) == 3
    with pytest.raises(ValueError, match="y has the label 3, the classes are"):
        parts.partial_fit(X[:1], [3])


def test_classes_that_come_later(iris):
    X, y = iris
    model = Classifier().partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    assert model.predict_proba(X).shape == (150, 3)


def test_several_numbers_for_each_example():
    X, y = make_regression(100, 4, n_targets=2, random_state=0)
    y = (y - y.mean(0)) / y.std(0)
    model = Regressor(epochs=60).fit(X, y)
    assert model.predict(X).shape == (100, 2) and model.score(X, y) > 0.9
    assert Regressor(epochs=1).fit(X, y[:, 0]).predict(X).shape == (100,)


def test_images_modules_losses_and_optimizers():
    images, labels = genesis.datasets.digits("train")
    images, labels = images[:300, None].numpy(), labels[:300].numpy()
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
    model = Classifier(net, optimizer=genesis.optim.SGD, optimizer_params={"momentum": 0.9}, lr=0.05, epochs=8)
    first = {k: v.clone() for k, v in net.state_dict().items()}
    assert model.fit(images, labels).score(images, labels) > 0.8
    assert all(genesis.equal(v, first[k]) for k, v in net.state_dict().items())  # a copy was trained
    smooth = Classifier(loss=nn.CrossEntropyLoss(label_smoothing=0.1), epochs=1).fit(images, labels)
    assert smooth.history_[0] > 0


def test_verbose(capsys):
    Regressor(epochs=2, verbose=True).fit(np.ones((4, 2)), np.ones(4))
    assert capsys.readouterr().out.startswith("epoch   1  loss ")


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"epochs": 0}, ValueError, "Classifier: epochs must be a positive integer, got 0"),
        ({"optimizer": "Adm"}, ValueError, "optimizer must be the name of one of genesis.optim, or one, got 'Adm'"),
        ({"module": 3}, TypeError, "module must be a module"),
    ],
)
def test_wrong_arguments(options, error, words, iris):
    with pytest.raises(error, match=words):
        Classifier(**options).fit(*iris)
