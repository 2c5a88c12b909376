# SPDX-License-Identifier: MIT
"""Arrays in the memory of a CUDA device: PyTorch's, CuPy's, and what else has __cuda_array_interface__. No library is
imported: whose array it is, is there already.
"""
import contextlib
import functools
import sys

import numpy as np

from ._errors import UsageError

CUDA, MANAGED = 2, 13  # device types of DLPack
MODULES_THAT_TAKE = ("torch", "cupy")


def module_of(value):
    """The imported module that an array comes from: torch, cupy."""
    return sys.modules.get(type(value).__module__.split(".")[0])


def is_on_device(value):
    """Whether the values lie in the memory of a CUDA device."""
    if getattr(value, "is_cuda", None) is not None:  # a tensor in host memory has the interface, too
        return bool(value.is_cuda)
    if hasattr(type(value), "__cuda_array_interface__") or hasattr(value, "__cuda_array_interface__"):
        return True
    device = getattr(value, "__dlpack_device__", None)
    return device is not None and device()[0] in (CUDA, MANAGED)


def _with_interface(value, name):
    """The array itself, or another library's view of one that has DLPack alone."""
    if _is_tensor(value) or hasattr(value, "__cuda_array_interface__"):
        return value
    for module in MODULES_THAT_TAKE:
        if hasattr(sys.modules.get(module), "from_dlpack"):
            return sys.modules[module].from_dlpack(value)
    raise UsageError(f"{name} is an array on a device that supports only DLPack, which is not supported here", "Import torch or cupy to read it; results are then arrays of that library.")


@functools.lru_cache(maxsize=None)
def _dtype_of(kind):
    """NumPy's type of a tensor's: torch.float32."""
    return np.dtype(str(kind).split(".")[-1])


def _is_tensor(value):
    return hasattr(value, "data_ptr") and hasattr(value, "permute")


class DeviceArray:
    """An array on a device, with as much of NumPy's interface as is needed to lay axes in another order. `owner` is the
    array that the user knows, seen in the same way.
    """

    def __init__(self, owner):
        self.owner = owner
        if _is_tensor(owner):
            self.dtype = _dtype_of(owner.dtype)
            self.shape = tuple(owner.shape)
            self.strides = tuple(s * self.dtype.itemsize for s in owner.stride())
            self.pointer, self.device = owner.data_ptr(), owner.device.index
        else:
            facts = owner.__cuda_array_interface__
            self.dtype, self.shape = np.dtype(facts["typestr"]), tuple(facts["shape"])
            steps = np.cumprod((1,) + self.shape[:0:-1])[::-1] * self.dtype.itemsize
            self.strides = tuple(facts.get("strides") or (int(s) for s in steps[:len(self.shape)]))
            self.pointer, self.device = facts["data"][0], _ordinal(owner)

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return int(np.prod(self.shape))

    @property
    def T(self):  # noqa: N802 - as NumPy has it
        return self.transpose(tuple(range(self.ndim))[::-1])

    def transpose(self, axes):
        axes = tuple(int(a) for a in axes)
        if axes == tuple(range(self.ndim)):
            return self
        return DeviceArray(self.owner.permute(axes) if _is_tensor(self.owner) else self.owner.transpose(axes))

    def __getitem__(self, key):
        return DeviceArray(self.owner[key])

    def stream(self):
        """The stream of the user's work with such arrays: what stands for it in C, and what makes it current where new
        arrays are made; None where that is no matter.
        """
        module = module_of(self.owner)
        if _is_tensor(self.owner):
            current = module.cuda.current_stream(self.device)
            return current.cuda_stream, (lambda: module.cuda.stream(current)) if current.cuda_stream else None
        if hasattr(getattr(module, "cuda", None), "get_current_stream"):
            with module.cuda.Device(self.device):
                current = module.cuda.get_current_stream()
            return current.ptr, lambda: _both(module.cuda.Device(self.device), current)
        return self.owner.__cuda_array_interface__.get("stream") or 0, contextlib.nullcontext

    def empty(self, shape, dtype):
        """A new array of the same kind, on the same device."""
        module, dtype = module_of(self.owner), np.dtype(dtype)
        if _is_tensor(self.owner):
            return DeviceArray(module.empty(shape, dtype=getattr(module, dtype.name), device=self.owner.device))
        make = getattr(getattr(module, "cuda", None), "device_array", None) or getattr(module, "empty", None)
        if make is None or not hasattr(self.owner, "__setitem__"):
            raise UsageError(f"results cannot be made as arrays of {type(self.owner).__module__}",
                             "Give a tensor of PyTorch or an array of CuPy that shares its memory.")
        return DeviceArray(make(shape, dtype=dtype))

    def on_host(self):
        """A copy as a NumPy array."""
        owner = self.owner
        if _is_tensor(owner):
            return owner.detach().cpu().numpy()
        copy = getattr(owner, "get", None) or getattr(owner, "copy_to_host", None)
        return copy() if copy else np.asarray(owner)


@contextlib.contextmanager
def _both(one, other):
    with one, other:
        yield


def _ordinal(owner):
    device = getattr(owner, "device", None)
    if isinstance(getattr(device, "id", None), int):
        return device.id
    told = getattr(owner, "__dlpack_device__", None)
    return int(told()[1]) if told is not None else 0


def as_device_array(value, name, types):
    """The array as it lies, of a type that the library takes; converted on the device where it has another one."""
    value = _with_interface(value, name)
    if getattr(value, "requires_grad", False):
        value = value.detach()
    kind = (str(value.dtype).split(".")[-1] if _is_tensor(value) else
            np.dtype(value.__cuda_array_interface__["typestr"]).name)
    if kind == "bool":
        value = value.view(module_of(value).uint8)
    elif kind in ("float16", "bfloat16"):
        value = value.float() if _is_tensor(value) else value.astype("float32")
    elif kind not in types:
        raise UsageError(f"{name} has values of type {kind}, not real numbers of up to 8 bytes",
                         "Convert them to float32, or take the real part of complex numbers.")
    array = DeviceArray(value)
    if array.size == 0:
        raise UsageError(f"{name} has no values: its shape is {array.shape}", "Give an array with at least one value.")
    return array
