"""A training of `train.py`, stopped on the way and resumed, where torch has one device more.

    python -m tests.helpers.fake_device --device pretended ...

The tensors of that device lie in main memory, but mixing them with others is an error. So what a GPU needs is tested
without one. The arithmetic is that of the processor, so networks that learn on either are equal.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from typing import Any

import torch as th
from torch.utils import _pytree as pytree
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from agents import command
from agents.runs import Stopped

NAME = "pretended"
LIBRARY = th.library.Library("_", "IMPL")
"""All that is registered with it is forgotten with it."""


class Pretended(th.Tensor):
    """A tensor of the device.

    Args:
        data: the tensor in main memory that it stands for.
    """

    data_: th.Tensor

    @staticmethod
    def __new__(cls, data: th.Tensor) -> Pretended:
        """Return a tensor that has everything of another one but its numbers."""
        tensor: Pretended = th.Tensor._make_wrapper_subclass(
            cls,
            data.shape,
            strides=data.stride(),
            storage_offset=data.storage_offset(),
            dtype=data.dtype,
            device=th.device(NAME, 0),
        )
        tensor.data_ = data
        return tensor

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Be saved as what any machine can read, as tensors of a GPU are."""
        return self.data_.__reduce_ex__(protocol)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Do what is asked of tensors of which at least one is of the device."""
        return do(func, *args, **(kwargs or {}))


def do(operation: Any, *args: Any, device: Any = None, **kwargs: Any) -> Any:
    """Do an operation of torch in main memory, with results where they belong.

    Raises:
        RuntimeError: if tensors are mixed; a number by itself, or indices, may come from main memory, as with CUDA.
    """
    copies = operation.overloadpacket in (th.ops.aten._to_copy, th.ops.aten.copy_, th.ops.aten._copy_from)
    takes_indices = "index" in operation.overloadpacket.__name__
    for tensor in pytree.tree_leaves((args, kwargs)):
        elsewhere = isinstance(tensor, th.Tensor) and not isinstance(tensor, Pretended) and tensor.dim() > 0
        if elsewhere and not copies and not (takes_indices and tensor.dtype in (th.int64, th.bool)):
            raise RuntimeError(f"{operation} is given tensors of {NAME} and of {tensor.device}")
    here = device is None or th.device(device).type == NAME
    if device is not None:
        kwargs["device"] = th.device("cpu")
    first = args[0] if args else None
    if operation.overloadpacket is th.ops.aten._to_copy and device is None:
        here = isinstance(first, Pretended)
    done = operation(*pytree.tree_map(data_of, args), **pytree.tree_map(data_of, kwargs))
    returned = operation._schema.returns
    if len(returned) == 1 and returned[0].alias_info is not None and returned[0].alias_info.is_write:
        return kwargs.get("out", first)
    return pytree.tree_map(wrapped, done) if here else done


def data_of(value: Any) -> Any:
    """Return what stands for a tensor of the device, or any other value as it is."""
    return value.data_ if isinstance(value, Pretended) else value


def wrapped(value: Any) -> Any:
    """Return a tensor of the device for one in main memory, or any other value as it is."""
    return Pretended(value) if isinstance(value, th.Tensor) and not isinstance(value, Pretended) else value


def register() -> None:
    """Let this process have the device."""
    _setup_privateuseone_for_python_backend(NAME)
    LIBRARY.fallback(do, dispatch_key="PrivateUse1")
    # Parameters that move must stay those that the optimizer has; CUDA needs no word for that.
    th.__future__.set_swap_module_params_on_conversion(True)
    for name in ("tensor", "as_tensor"):  # they alone do not ask the device, and fail
        make = getattr(th, name)
        setattr(th, name, lambda data, device=None, make=make, **kwargs: make(data, **kwargs).to(device))


if __name__ == "__main__":
    register()
    learner, settings = command.parse(sys.argv[1:])
    run = learner.Run.begin(settings)
    with contextlib.suppress(Stopped):
        run.train(lambda run: setattr(run, "stop", run.done > 0))
    assert 0 < run.done < run.total
    learner.Run.resume(replace(settings, resume=settings.folder)).train(lambda run: None)
