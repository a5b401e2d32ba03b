# ruff: noqa: N803, N806  scikit-learn calls examples X
"""Networks as estimators of scikit-learn: in its pipelines, searches and cross-validations.

    search = GridSearchCV(make_pipeline(StandardScaler(), Classifier(epochs=30)), {"classifier__lr": [1e-3, 1e-2]}, cv=5)

Needs the package ``scikit-learn`` (``pip install "genesis-dl[sklearn]"``).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import genesis
from genesis import nn, optim
from genesis.base.errors import ArgumentError, ArgumentValueError, MissingImport, message
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.random import fork_rng

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ModuleNotFoundError as _missing:
    _reason = str(_missing)

    class BaseEstimator:  # type: ignore[no-redef]
        """What stands for scikit-learn where it is not: no estimator can be made."""

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            text = f"needs the package scikit-learn ({_reason})"
            raise MissingImport(message(cls.__name__, text, hint='pip install "genesis-dl[sklearn]"'))

    class ClassifierMixin:  # type: ignore[no-redef]
        """Nothing."""

    class RegressorMixin:  # type: ignore[no-redef]
        """Nothing."""


Module = Callable[..., nn.Module]
HIDDEN = 64


def perceptron(n_features: int, n_outputs: int) -> nn.Module:
    """The network unless another is given: one hidden layer of 64.

    >>> perceptron(4, 3)
    Sequential(
      (0): Flatten(start_dim=1, end_dim=-1)
      (1): Linear(in_features=4, out_features=64, bias=True)
      (2): ReLU()
      (3): Linear(in_features=64, out_features=3, bias=True)
    )
    """
    return nn.Sequential(nn.Flatten(), nn.Linear(n_features, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, n_outputs))


class _Network(BaseEstimator):  # type: ignore[misc]
    """What classifiers and regressors share: building, training, and computing in batches."""

    def __init__(
        self,
        module: Any = perceptron,
        *,
        module_params: Mapping[str, Any] | None = None,
        loss: Any = None,
        optimizer: Any = "AdamW",
        optimizer_params: Mapping[str, Any] | None = None,
        lr: float = 1e-2,
        epochs: int = 50,
        batch_size: int = 64,
        seed: int | None = 0,
        verbose: bool = False,
    ) -> None:
        self.module = module
        self.module_params = module_params
        self.loss = loss
        self.optimizer = optimizer
        self.optimizer_params = optimizer_params
        self.lr = lr
        self.epochs = epochs
        self.batch_size = batch_size
        self.seed = seed
        self.verbose = verbose

    # ---- training

    def fit(self, X: Any, y: Any) -> Any:
        """Train a new network for ``epochs`` passes over the examples.

        Args:
            X: examples (n, features), or with more dimensions, as the module takes them
            y: their targets
        """
        self._check_arguments()
        inputs, targets = self._data(X, y, reset=True)
        with fork_rng():
            self._begin(inputs)
            self._train(inputs, targets, self.epochs)
        return self

    def _continue(self, X: Any, y: Any, first: bool) -> Any:
        self._check_arguments()
        inputs, targets = self._data(X, y, reset=first)
        with fork_rng():
            if first:
                self._begin(inputs)
            else:
                genesis.set_rng_state(self._stream)
            self._train(inputs, targets, 1)
        return self

    def _check_arguments(self) -> None:
        for name in ("epochs", "batch_size"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < 1:
                raise ArgumentValueError(
                    message(type(self).__name__, f"{name} must be a positive integer, got {value!r}")
                )

    def _begin(self, inputs: Tensor) -> None:
        """A new network, optimizer and stream of random numbers."""
        if self.seed is None:
            genesis.seed()
        else:
            genesis.manual_seed(self.seed)
        self.module_ = self._new_module(inputs)
        self.loss_ = self._new_loss()
        make = getattr(optim, self.optimizer, None) if isinstance(self.optimizer, str) else self.optimizer
        if not callable(make):
            text = f"optimizer must be the name of one of genesis.optim, or one, got {self.optimizer!r}"
            raise ArgumentValueError(message(type(self).__name__, text))
        self.optimizer_ = make(self.module_.parameters(), lr=self.lr, **(self.optimizer_params or {}))
        self.history_: list[float] = []

    def _new_module(self, inputs: Tensor) -> nn.Module:
        if isinstance(self.module, nn.Module):
            return copy.deepcopy(self.module)
        if not callable(self.module):
            text = (
                f"module must be a module, or make one of the numbers of features and of outputs, got {self.module!r}"
            )
            raise ArgumentError(message(type(self).__name__, text))
        features = int(np.prod(inputs.shape[1:]))
        return self.module(features, self._outputs, **(self.module_params or {}))  # type: ignore[no-any-return]

    def _new_loss(self) -> Any:
        loss = self._usual_loss if self.loss is None else self.loss
        return loss() if isinstance(loss, type) else loss

    def _train(self, inputs: Tensor, targets: Tensor, epochs: int) -> None:
        self.module_.train()
        for _ in range(epochs):
            total = 0.0
            for at in genesis.randperm(len(inputs)).split(self.batch_size):
                loss = self.loss_(self._outputs_of(inputs[at]), targets[at])
                self.optimizer_.zero_grad()
                loss.backward()
                self.optimizer_.step()
                total += loss.item() * len(at)
            self.history_.append(total / len(inputs))
            if self.verbose:
                print(f"epoch {len(self.history_):3d}  loss {self.history_[-1]:.4f}")
        self.module_.eval()
        self._stream = genesis.get_rng_state()

    # ---- computing

    def _computed(self, X: Any) -> np.ndarray[Any, Any]:
        """What the network gives for examples, in evaluation mode."""
        check_is_fitted(self)
        inputs = self._inputs(X, reset=False)
        with genesis.no_grad():
            return genesis.cat([self._outputs_of(part) for part in inputs.split(self.batch_size)]).numpy()

    def _outputs_of(self, inputs: Tensor) -> Tensor:
        return self.module_(inputs)  # type: ignore[no-any-return]

    def _inputs(self, X: Any, reset: bool) -> Tensor:
        return genesis.tensor(validate_data(self, X, dtype=np.float32, allow_nd=True, reset=reset))

    # ---- of the two kinds

    _usual_loss: Any = None
    _outputs = 1

    def _data(self, X: Any, y: Any, reset: bool) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


_ARGUMENTS = """

    Args:
        module: what makes the network of the numbers of features and of outputs, a class or a function; or a module,
            which is copied at each fit. A perceptron with one hidden layer unless given
        module_params: keywords for it
        loss: a function of outputs and targets, or a class of one; {loss} unless given
        optimizer: the name of one of `genesis.optim`, its class, or a function of parameters and ``lr``
        optimizer_params: keywords for it
        lr: the learning rate
        epochs: passes over the examples
        batch_size: examples in each step
        seed: of the first weights, the order of examples and dropout; None is another one at each fit. The streams of
            random numbers outside are not touched
        verbose: print the loss of each epoch

    Attributes:
        module_, optimizer_: the trained network, and its optimizer
        history_: the mean loss of each epoch
        n_features_in_, feature_names_in_: of the examples, as scikit-learn has them{more}
    """


class Classifier(ClassifierMixin, _Network):  # type: ignore[misc]
    __doc__ = (
        """A network that tells classes apart, as an estimator of scikit-learn."""
        + _ARGUMENTS.format(loss="`genesis.nn.CrossEntropyLoss`", more="\n        classes_: the labels, in order")
        + """
    >>> from genesis.sklearn import Classifier
    >>> images, labels = genesis.datasets.digits("train")
    >>> Classifier(epochs=3).fit(images.reshape(-1, 64), labels).score(images.reshape(-1, 64), labels) > 0.9  # doctest: +SKIP
    True
    """
    )

    _usual_loss = nn.CrossEntropyLoss

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Classifier:
        """One more pass over examples, which need not be those before.

        Args:
            classes: all labels there will be; needed at the first call if ``y`` lacks some
        """
        first = not hasattr(self, "module_")
        if first:
            self._known = None if classes is None else np.unique(classes)
        try:
            return self._continue(X, y, first)  # type: ignore[no-any-return]
        finally:
            self._known = None

    _known: Any = None

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """Probabilities of the classes, (n, classes), in the order of ``classes_``."""
        return genesis.softmax(genesis.tensor(self._computed(X)), 1).numpy()  # type: ignore[no-any-return]

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The most probable labels."""
        best = self._computed(X).argmax(1)
        return self.classes_[best]  # type: ignore[no-any-return]

    @property
    def _outputs(self) -> int:  # type: ignore[override]
        return len(self.classes_)

    def _data(self, X: Any, y: Any, reset: bool) -> tuple[Tensor, Tensor]:
        X, y = validate_data(self, X, y, dtype=np.float32, allow_nd=True, reset=reset)
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        if reset:
            self.classes_ = np.unique(y) if self._known is None else self._known
        indices = np.searchsorted(self.classes_, y)
        wrong = self.classes_[np.minimum(indices, len(self.classes_) - 1)] != y
        if wrong.any():
            text = f"y has the label {y[wrong][0].item()!r}, the classes are {self.classes_.tolist()}"
            raise ArgumentValueError(
                message("Classifier", text, hint="partial_fit(X, y, classes=...) at the first call")
            )
        return genesis.tensor(X), genesis.tensor(indices)


class Regressor(RegressorMixin, _Network):  # type: ignore[misc]
    __doc__ = (
        """A network that gives numbers, one or several for each example, as an estimator of scikit-learn."""
        + _ARGUMENTS.format(loss="`genesis.nn.MSELoss`", more="")
        + """
    >>> import numpy as np
    >>> from genesis.sklearn import Regressor
    >>> x = np.linspace(-2, 2, 100)[:, None]
    >>> Regressor().fit(x, np.sin(x[:, 0])).score(x, np.sin(x[:, 0])) > 0.9  # doctest: +SKIP
    True
    """
    )

    _usual_loss = nn.MSELoss

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def partial_fit(self, X: Any, y: Any) -> Regressor:
        """One more pass over examples, which need not be those before."""
        return self._continue(X, y, not hasattr(self, "module_"))  # type: ignore[no-any-return]

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The numbers for examples, (n,) or (n, outputs), as the targets were."""
        out = self._computed(X).astype(np.float64)  # as all regressors of scikit-learn give them
        return out[:, 0] if self._flat else out

    def _data(self, X: Any, y: Any, reset: bool) -> tuple[Tensor, Tensor]:
        X, y = validate_data(
            self, X, y, dtype=np.float32, allow_nd=True, multi_output=True, y_numeric=True, reset=reset
        )
        targets = np.asarray(y, np.float32)
        if reset:
            self._flat = targets.ndim == 1
            self._outputs = 1 if self._flat else targets.shape[1]  # type: ignore[misc]
        return genesis.tensor(X), genesis.tensor(targets.reshape(len(targets), -1))


__all__ = ["Classifier", "Regressor"]
