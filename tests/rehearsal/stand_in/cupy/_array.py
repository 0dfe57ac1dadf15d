"""Arrays of the device: an array of NumPy inside, from which nothing leaves without being asked."""

from typing import Any

import numpy as np

from cupy import _memory
from cupy._limits import check_atomic
from cupy._strict import IMPLICIT, SCALARS, inside, outside


def place(key: Any) -> Any:
    """An index as NumPy takes it; CuPy takes arrays of the host as well."""
    if isinstance(key, tuple):
        return tuple(place(each) for each in key)
    if isinstance(key, ndarray):
        return key._a
    if isinstance(key, list):
        return np.asarray([place(each) for each in key], dtype=None if key else np.intp)
    return key


class ndarray:  # noqa: N801
    """An array that NumPy cannot read; every result of its methods is such an array again."""

    __array_priority__ = 100
    __slots__ = ("__weakref__", "_a")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C"
    ) -> None:
        if memptr is None:
            self._a = _memory.empty(shape, dtype, order)
        else:
            nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
            bytes_ = np.asarray(_memory._Bytes(memptr, nbytes))
            self._a = np.ndarray(shape, dtype, bytes_, 0, strides, order)  # type: ignore[arg-type]

    @classmethod
    def _of(cls, array: Any, *parents: Any) -> "ndarray":
        """An array of NumPy taken over: into memory of the allocator, if it shows no parent's."""
        found = cls.__new__(cls)
        if _memory.has_allocator() and not any(
            isinstance(parent, np.ndarray) and np.may_share_memory(parent, array) for parent in parents
        ):
            own = _memory.empty(array.shape, array.dtype, "F" if array.flags.fnc else "C")
            own[...] = array
            array = own
        found._a = array
        return found

    # What it is.
    dtype = property(lambda self: self._a.dtype)
    ndim = property(lambda self: self._a.ndim)
    size = property(lambda self: self._a.size)
    itemsize = property(lambda self: self._a.itemsize)
    nbytes = property(lambda self: self._a.nbytes)
    strides = property(lambda self: self._a.strides)
    flags = property(lambda self: Flags(self._a.flags))
    T = property(lambda self: outside(self._a.T, self._a))
    mT = property(lambda self: outside(self._a.mT, self._a))
    base = property(lambda self: None if self._a.base is None else self)
    flat = property(lambda self: self.ravel())

    @property
    def shape(self) -> tuple[int, ...]:
        return self._a.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        self._a = self._a.reshape(shape, copy=False)

    @property
    def real(self) -> "ndarray":
        return outside(self._a.real, self._a)

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> "ndarray":
        return outside(self._a.imag, self._a)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    @property
    def data(self) -> _memory.MemoryPointer:
        memory = _memory.UnownedMemory(self._a.ctypes.data, self._a.nbytes, self._a, 0)
        return _memory.MemoryPointer(memory, 0)

    @property
    def device(self) -> Any:
        from cupy.cuda import Device

        return Device(0)

    # Ways to the host.
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(IMPLICIT)

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        if out is None:
            return np.array(self._a, order=order, copy=True)  # type: ignore[call-overload]
        if out.dtype != self.dtype or out.shape != self.shape:
            raise ValueError("`out` must have the dtype and shape of the array")
        out[...] = self._a
        return out

    def set(self, arr: Any, stream: Any = None) -> None:
        if not isinstance(arr, np.ndarray):
            raise TypeError(f"Only numpy.ndarray can be set to cupy.ndarray, not {type(arr)}")
        if arr.dtype != self.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if arr.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old shape: {arr.shape}, new shape: {self.shape}")
        if not (self._a.flags.c_contiguous or self._a.flags.f_contiguous):
            raise RuntimeError("Cannot set to non-contiguous array")
        self._a[...] = arr

    def item(self) -> Any:
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self._a.item()

    def tolist(self) -> Any:
        return self._a.tolist()

    def tobytes(self, order: str = "C") -> bytes:
        return self._a.tobytes(order)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return bool(self._a)

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __len__(self) -> int:
        return len(self._a)

    def __iter__(self) -> Any:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return repr(self._a)

    __str__ = lambda self: str(self._a)  # noqa: E731
    __format__ = lambda self, spec: format(self._a[()], spec)  # noqa: E731

    def __reduce__(self) -> Any:
        return _unpickled, (self.get(),)

    def __copy__(self) -> "ndarray":
        return self.copy()

    def __deepcopy__(self, memo: Any) -> "ndarray":
        return self.copy()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self._a.__array_interface__, "version": 3}

    # Parts.
    def __getitem__(self, key: Any) -> "ndarray":
        return outside(self._a[place(key)], self._a)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, ndarray):
            value = value._a
        elif isinstance(value, np.ndarray) and value.shape:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        elif not isinstance(value, (*SCALARS, np.ndarray)):
            raise TypeError(f"Unsupported type {type(value)}")
        self._a[place(key)] = value

    def fill(self, value: Any) -> None:
        self[...] = value

    # New arrays.
    def astype(
        self, dtype: Any, order: str = "K", casting: Any = None, subok: Any = None, copy: bool = True
    ) -> "ndarray":
        found = self._a.astype(dtype, order=order, casting=casting or "unsafe", copy=copy)  # type: ignore[call-overload]
        return self if found is self._a else outside(found)

    def copy(self, order: str = "C") -> "ndarray":
        return outside(self._a.copy(order))  # type: ignore[arg-type]

    def view(self, dtype: Any = None, type: Any = None) -> "ndarray":
        return outside(self._a.view() if dtype is None else self._a.view(dtype), self._a)

    def reshape(self, *shape: Any, order: str = "C", copy: Any = None) -> "ndarray":
        return outside(self._a.reshape(*shape, order=order, copy=copy), self._a)  # type: ignore[call-overload]

    def transpose(self, *axes: Any) -> "ndarray":
        return outside(self._a.transpose(*axes), self._a)

    def dot(self, b: Any, out: Any = None) -> "ndarray":
        return outside(self._a.dot(inside(b, "dot")))

    def sort(self, axis: int = -1, kind: Any = None) -> None:
        self._a.sort(axis=axis, kind="stable")

    def partition(self, kth: Any, axis: int = -1) -> None:
        self._a.partition(kth, axis)

    def scatter_add(self, slices: Any, value: Any) -> None:
        check_atomic("add", self.dtype)
        np.add.at(self._a, place(slices), inside(value, "scatter_add"))

    # What NumPy does when it meets such an array.
    def __array_ufunc__(self, function: Any, method: str, *given: Any, **options: Any) -> Any:
        import cupy

        own = getattr(cupy, function.__name__, None)
        if own is None or method not in ("__call__", "outer", "at"):
            return NotImplemented
        if function.__name__ in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
            given = tuple(x.item() if isinstance(x, np.ndarray) and x.ndim == 0 else x for x in given)
        if "out" in options:
            (options["out"],) = options["out"]
        return (own if method == "__call__" else getattr(own, method))(*given, **options)

    def __array_function__(self, function: Any, types: Any, given: Any, options: Any) -> Any:
        import cupy

        own: Any = cupy
        for part in (*(function.__module__ or "").split(".")[1:], function.__name__):
            own = getattr(own, part, None)
        if own is None or own is function or any(t not in (ndarray, np.ndarray) for t in types):
            return NotImplemented
        return own(*given, **options)


class Flags:
    """Layout of an array in memory."""

    def __init__(self, flags: Any) -> None:
        self.c_contiguous: bool = flags.c_contiguous
        self.f_contiguous: bool = flags.f_contiguous
        self.owndata: bool = flags.owndata
        self.fnc: bool = flags.fnc
        self.forc: bool = flags.forc

    def __getitem__(self, name: str) -> bool:
        return bool(getattr(self, name.lower()))


def _unpickled(array: Any) -> ndarray:
    return ndarray._of(array)


def _operators() -> None:
    """Arithmetic by the functions of CuPy; other classes have the first word, as Python wants it."""
    names = {
        "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "mod": "remainder",
        "floordiv": "floor_divide", "pow": "power", "and": "bitwise_and", "or": "bitwise_or",
        "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift", "matmul": "matmul",
        "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
        "ne": "not_equal", "divmod": "divmod",
    }  # fmt: skip

    def function(name: str) -> Any:
        import cupy

        return getattr(cupy, name)

    def foreign(other: Any) -> bool:
        return not isinstance(other, (ndarray, np.ndarray, *SCALARS)) and hasattr(other, "__array_ufunc__")

    for short, name in names.items():

        def forward(self: Any, other: Any, name: str = name) -> Any:
            return NotImplemented if foreign(other) else function(name)(self, other)

        def backward(self: Any, other: Any, name: str = name) -> Any:
            return NotImplemented if foreign(other) else function(name)(other, self)

        def in_place(self: Any, other: Any, name: str = name) -> Any:
            return function(name)(self, other, out=self)

        setattr(ndarray, f"__{short}__", forward)
        if short not in ("lt", "le", "gt", "ge", "eq", "ne"):
            setattr(ndarray, f"__r{short}__", backward)
            if short not in ("matmul", "divmod"):
                setattr(ndarray, f"__i{short}__", in_place)
    for short, name in {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}.items():
        setattr(ndarray, f"__{short}__", lambda self, name=name: function(name)(self))


def _methods() -> None:
    """The methods that CuPy has, with its parameters, except those above."""
    from cupy._names import on_device, sections

    for line in sections()["methods"]:
        name, _, parameters = line.rstrip(")").partition("(")
        if name in vars(ndarray) or not hasattr(np.ndarray, name):
            continue
        names = ["self", *filter(None, parameters.split(", "))]
        setattr(ndarray, name, on_device(name, names, getattr(np.ndarray, name)))


_operators()
_methods()
