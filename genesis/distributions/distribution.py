"""What all distributions have: `Distribution`, and `ExponentialFamily`, whose entropies follow from a normalizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import genesis as g
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Size, Tensor, known_values
from genesis.distributions import constraints
from genesis.distributions.utils import size, tensors


class derived:
    """An attribute that is computed wherever it was not given: what an instance has itself goes first.

    >>> class Circle:
    ...     @derived
    ...     def radius(self):
    ...         return self.diameter / 2
    >>> circle = Circle(); circle.diameter = 4
    >>> circle.radius
    2.0
    """

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        self.compute = compute

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else self.compute(instance)


class Distribution:
    """A batch of distributions: parameters of shape ``batch_shape``, values of shape ``event_shape`` each.

    ``parameters`` of a subclass (``arg_constraints``) are attributes of these names; ``_shapes`` says of those with
    dimensions of an event how many they have.
    """

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: ClassVar[dict[str, Any]] = {}
    _event_dims: ClassVar[dict[str, int]] = {}
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions look at their parameters and values, unless they are told.

        Raises:
            ValueError: neither True nor False
        """
        if value not in (True, False):
            raise ArgumentValueError(message("set_default_validate_args", f"expected True or False, got {value!r}"))
        Distribution._validate_args = bool(value)

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()  # of a class that is a module, too

    def _check_parameters(self) -> None:
        for name, constraint in self.arg_constraints.items():
            if constraints.is_dependent(constraint) or name not in self.__dict__:
                continue
            value = getattr(self, name)
            inside = known_values(constraint.check(value))
            if inside is not None and not inside.all():
                raise ArgumentValueError(
                    message(
                        type(self).__name__,
                        f"parameter {name} of shape {list(value.shape)} is not in {constraint!r}",
                        [(name, value.detach())],
                    )
                )

    def _check_value(self, value: Any) -> None:
        """Refuse values of another shape, or outside of the support."""
        if not self._validate_args:
            return
        name = type(self).__name__
        if not isinstance(value, Tensor):
            raise ArgumentValueError(message(name, f"the value must be a tensor, got {type(value).__name__}"))
        event = len(self._event_shape)
        if value.ndim < event or tuple(value.shape[value.ndim - event :]) != tuple(self._event_shape):
            raise ArgumentValueError(
                message(name, f"a value has shape {list(value.shape)}, events have {list(self._event_shape)}")
            )
        try:
            g.broadcast_shapes(tuple(value.shape), tuple(self._batch_shape + self._event_shape))
        except RuntimeError:
            raise ArgumentValueError(
                message(
                    name, f"a value of shape {list(value.shape)} does not go with the batch {list(self._batch_shape)}"
                )
            ) from None
        try:
            support = self.support
        except NotImplementedError:
            return
        inside = known_values(support.check(value))
        if inside is not None and not inside.all():
            raise ArgumentValueError(
                message(name, f"a value is not in the support {support!r}", [("value", value.detach())])
            )

    _validate_sample = _check_value

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        """The distribution with parameters expanded to a larger batch."""
        if _instance is None:
            return self._expanded(size(batch_shape))
        given = dict(_instance.__dict__)  # what a derived class has expanded in its own way
        rest = self._uninitialized()
        for name in given.keys() & self.arg_constraints.keys():
            rest.__dict__.pop(name, None)
        _instance.__dict__.update(rest._expanded(size(batch_shape)).__dict__)
        _instance.__dict__.update(given)
        return _instance  # type: ignore[no-any-return]

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """What `expand` of a derived class fills: ``_instance``, or one that was not initialized."""
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc]
            problem = "it has another __init__ than the class that expands it"
            raise NotImplementedError(message(f"{type(self).__name__}.expand", problem, hint="define expand, too"))
        return object.__new__(type(self)) if _instance is None else _instance

    def _uninitialized(self) -> Any:
        """One of the same class, with all attributes of this one."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    def _expanded(self, batch_shape: Size) -> Distribution:
        new = object.__new__(type(self))
        new.__dict__.update({k: v for k, v in self.__dict__.items() if k not in self.arg_constraints})
        for name in self.arg_constraints:
            if name in self.__dict__:
                value, dims = getattr(self, name), self._event_dims.get(name, 0)
                if isinstance(value, Tensor):
                    new.__dict__[name] = value.expand((*batch_shape, *value.shape[value.ndim - dims :]))
                else:
                    new.__dict__[name] = value
        new._batch_shape = batch_shape
        new._after_expand(self)
        return new

    def _after_expand(self, old: Any) -> None:
        """What else depends on the batch."""

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value."""
        return self._event_shape

    def _missing(self, what: str) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: {what} is not there")

    @property
    def support(self) -> Any:
        """The set of values."""
        return self._missing("support")

    @property
    def mean(self) -> Tensor:
        return self._missing("mean")  # type: ignore[no-any-return]

    @property
    def mode(self) -> Tensor:
        return self._missing("mode")  # type: ignore[no-any-return]

    @property
    def variance(self) -> Tensor:
        return self._missing("variance")  # type: ignore[no-any-return]

    @property
    def stddev(self) -> Tensor:
        """The root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Values drawn, without gradients, of shape ``sample_shape + batch_shape + event_shape``."""
        with g.no_grad():
            return self.rsample(sample_shape).detach()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Values drawn as functions of the parameters, with gradients."""
        return self._missing("rsample")  # type: ignore[no-any-return]

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at values."""
        return self._missing("log_prob")  # type: ignore[no-any-return]

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to these."""
        return self._missing("cdf")  # type: ignore[no-any-return]

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`."""
        return self._missing("icdf")  # type: ignore[no-any-return]

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along dimension 0."""
        return self._missing("enumerate_support")  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        """The mean of minus the logarithm of the density."""
        return self._missing("entropy")  # type: ignore[no-any-return]

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return size(sample_shape, self._batch_shape, self._event_shape)

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        values = values.reshape((-1, *[1] * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def __repr__(self) -> str:
        parts = []
        for name in self.arg_constraints:
            if name in self.__dict__:
                value = getattr(self, name)
                one = isinstance(value, Tensor) and value.numel() == 1
                parts.append(f"{name}: {value if one or not isinstance(value, Tensor) else value.shape}")
        return f"{type(self).__name__}({', '.join(parts)})"


class ExponentialFamily(Distribution):
    """Densities $h(x) \\exp(\\eta \\cdot t(x) - A(\\eta))$: entropies and divergences follow from A (Nielsen and Nock
    2010, "Entropies and cross-entropies of exponential families").
    """

    @property
    def _mean_carrier_measure(self) -> Any:
        """The mean of $\\ln h(x)$."""
        return self._missing("the mean of its carrier measure")

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self._missing("natural parameters")  # type: ignore[no-any-return]

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return self._missing("a normalizer")  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        """From the normalizer and its gradient."""
        params = [p.detach().requires_grad_() for p in self._natural_params]
        with g.enable_grad():
            normalizer = self._log_normalizer(*params)
            gradients = g.autograd.grad(normalizer.sum(), params, create_graph=True)
        entropy = normalizer - self._mean_carrier_measure
        for p, gradient in zip(params, gradients, strict=True):
            term = p * gradient
            entropy = entropy - term.reshape((*self._batch_shape, -1)).sum(-1)
        return entropy


__all__ = ["Distribution", "ExponentialFamily", "tensors"]
