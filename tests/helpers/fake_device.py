"""Run `train.py` on a simulated torch device; the training run is stopped and resumed.

    python -m tests.helpers.fake_device --device pretended ...

The tensors of this device are in main memory, but mixing them with CPU tensors is an error, as with a GPU. The CPU does
the arithmetic, so training runs on both devices give equal networks.
"""

import contextlib
import sys
from dataclasses import replace
from typing import Any

import torch as th
from torch.utils import _pytree as pytree
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from agents import command, loop

NAME = "pretended"
LIBRARY = th.library.Library("_", "IMPL")
"""Registrations last as long as this object."""


class Pretended(th.Tensor):
    """A tensor of the device.

    Args:
        data: the tensor in main memory with its values.
    """

    data_: th.Tensor

    @staticmethod
    def __new__(cls, data: th.Tensor) -> "Pretended":
        """Return a tensor with the metadata of another one."""
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
        """Pickle the tensor in main memory, so that any machine can read it."""
        return self.data_.__reduce_ex__(protocol)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Dispatch an operation with at least one tensor of the device."""
        return do(func, *args, **(kwargs or {}))


def do(operation: Any, *args: Any, device: Any = None, **kwargs: Any) -> Any:
    """Do an operation of torch in main memory; return results on the device that torch would use.

    Raises:
        RuntimeError: if tensors of both devices are mixed; as with CUDA, scalars and indices may be in main memory.
    """
    copies = operation.overloadpacket in (th.ops.aten._to_copy, th.ops.aten.copy_, th.ops.aten._copy_from)
    takes_indices = "index" in operation.overloadpacket.__name__
    for tensor in pytree.tree_leaves((args, kwargs)):
        elsewhere = isinstance(tensor, th.Tensor) and not isinstance(tensor, Pretended) and tensor.dim() > 0
        if elsewhere and not copies and not (takes_indices and tensor.dtype in (th.int64, th.bool)):
            raise RuntimeError(f"{operation} got tensors of {NAME} and of {tensor.device}")
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
    """Return the data of a tensor of the device, or any other value unchanged."""
    return value.data_ if isinstance(value, Pretended) else value


def wrapped(value: Any) -> Any:
    """Return a tensor of the device for one in main memory, or any other value unchanged."""
    return Pretended(value) if isinstance(value, th.Tensor) and not isinstance(value, Pretended) else value


def register() -> None:
    """Register the device in this process."""
    _setup_privateuseone_for_python_backend(NAME)
    LIBRARY.fallback(do, dispatch_key="PrivateUse1")
    # The optimizer must keep the same parameter objects after a move; CUDA does this by default.
    th.__future__.set_swap_module_params_on_conversion(True)
    for name in ("tensor", "as_tensor"):  # these two bypass the device and fail
        make = getattr(th, name)
        setattr(th, name, lambda data, device=None, make=make, **kwargs: make(data, **kwargs).to(device))


if __name__ == "__main__":
    register()
    name, settings = command.parse(sys.argv[1:])
    with loop.opened(name, settings) as run, contextlib.suppress(loop.Stopped):
        loop.train(run, lambda run: setattr(run, "stop", run.done > 0))
    assert 0 < run.done < run.total
    with loop.opened(name, replace(settings, resume=settings.folder)) as run:
        loop.train(run, lambda run: None)
