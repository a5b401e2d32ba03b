"""What TensorBoard's table of hyperparameters is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.call.refusal import described, explain_all
from genesis.core.graph.tensor import Tensor
from genesis.utils.tensorboard import protos
from genesis.utils.tensorboard.values import dictionary, one_number


def hparams(
    hparam_dict: dict[str, Any],
    metric_dict: dict[str, Any],
    hparam_domain_discrete: dict[str, list[Any]] | None = None,
) -> tuple[Any, Any, Any]:
    """Three summaries of a run's hyperparameters: which there are, what they were at its start, and that it ended.

    Args:
        hparam_dict: numbers, bools (as numbers, as PyTorch has them), strings, tensors of one number; None is left out
        metric_dict: of whose names the table has columns
        hparam_domain_discrete: for hyperparameters, all the values that they may have

    Returns:
        ``Summary`` messages of the experiment, of the session's start and of its end

    Raises:
        TypeError: no dictionaries, or possible values of another type
        ValueError: a hyperparameter of another kind
        ModuleNotFoundError: the package tensorboard is not installed
    """
    values = {k: v for k, v in dictionary(hparam_dict, "hparams", "hparam_dict").items() if v is not None}
    dictionary(metric_dict, "hparams", "metric_dict")
    domains = dictionary(hparam_domain_discrete or {}, "hparams", "hparam_domain_discrete")
    for name, domain in domains.items():
        _check_domain(name, domain, hparam_dict)
    start, infos = protos.SessionStartInfo(), []
    for name, value in values.items():
        kind, field, value = _typed(name, value)
        setattr(start.hparams[name], field, value)
        domain = None
        if name in domains and not isinstance(values[name], Tensor):
            domain = {"values": [{field: each} for each in domains[name]]}
        infos.append(
            protos.HParamInfo(name=name, type=protos.DataType.Value(f"DATA_TYPE_{kind}"), domain_discrete=domain)
        )
    metrics = [protos.MetricInfo(name=protos.MetricName(tag=tag)) for tag in metric_dict]
    metadata = protos.tensorboard("plugins.hparams.metadata")
    return (
        _summary(metadata.EXPERIMENT_TAG, experiment=protos.Experiment(hparam_infos=infos, metric_infos=metrics)),
        _summary(metadata.SESSION_START_INFO_TAG, session_start_info=start),
        _summary(
            metadata.SESSION_END_INFO_TAG,
            session_end_info=protos.SessionEndInfo(status=protos.Status.Value("STATUS_SUCCESS")),
        ),
    )


def _check_domain(name: str, domain: Any, hparam_dict: dict[str, Any]) -> None:
    if name not in hparam_dict:
        raise ArgumentError(message("hparams", f"hparam_domain_discrete has {name!r}, which is no hyperparameter"))
    kind = type(hparam_dict[name])
    if not isinstance(domain, list) or not all(isinstance(value, kind) for value in domain):
        raise ArgumentError(
            message(
                "hparams",
                f"hparam_domain_discrete[{name!r}] must be a list of {kind.__name__}, as the value is; got "
                f"{described(domain)}",
            )
        )


def _typed(name: str, value: Any) -> tuple[str, str, Any]:
    """The type of a hyperparameter, the field of a message that has such values, and the value."""
    if isinstance(value, str):
        return "STRING", "string_value", value
    if isinstance(value, bool | int | float | Tensor | np.number | np.bool_):
        return "FLOAT64", "number_value", one_number(value, "hparams", name)
    raise ArgumentValueError(
        message("hparams", f"{name!r} must be a number, a bool, a string or a tensor, got {described(value)}")
    )


def _summary(tag: str, **content: Any) -> Any:
    """A summary without a value: the message is among what the plugin knows of the tag."""
    plugin = protos.tensorboard("plugins.hparams.metadata")
    data = protos.HParamsPluginData(version=plugin.PLUGIN_DATA_VERSION, **content)
    summary = protos.SummaryMetadata
    metadata = summary(plugin_data=summary.PluginData(plugin_name=plugin.PLUGIN_NAME, content=data.SerializeToString()))
    return protos.Summary(value=[protos.Summary.Value(tag=tag, metadata=metadata)])


explain_all(globals())
