# SPDX-License-Identifier: MIT
"""libhsi by ctypes: arrays and texts in, arrays and texts out. Nothing here knows an algorithm.

The library is $HSI_LIBRARY, else the one that lies in this package, else the system's libhsi.so.0.
"""
import _thread
import ctypes
import functools
import json
import os
import pathlib
import queue
import threading

import numpy as np

from ._devices import DeviceArray
from ._errors import Cancelled, Error, UsageError

TYPES = {  # hsi.h's numbers
    "uint8": 1, "uint16": 2, "int16": 3, "uint32": 4, "int32": 5, "float32": 6, "float64": 7, "uint64": 12, "int64": 13,
    "int8": 14,
}
DTYPES = {number: np.dtype(name) for name, number in TYPES.items()}
NUMBERS = {dtype: number for number, dtype in DTYPES.items()}
OK, FAILED, USAGE, CANCELLED = range(4)
OF_DEVICE = ("CUDA", "cuBLAS", "cuFFT", "cuSOLVER", "cannot pin", "internal", "out of memory")  # what begins a failure that no argument causes


class _Array(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("data", ctypes.c_void_p), ("shape", ctypes.c_int64 * 3), ("strides", ctypes.c_int64 * 3),
        ("type", ctypes.c_int32), ("device", ctypes.c_int32), ("stream", ctypes.c_void_p), ("mask", ctypes.c_void_p),
        ("mask_strides", ctypes.c_int64 * 2), ("has_nodata", ctypes.c_int32), ("nodata", ctypes.c_double),
        ("wavelengths", ctypes.POINTER(ctypes.c_double)), ("widths", ctypes.POINTER(ctypes.c_double)),
        ("names", ctypes.POINTER(ctypes.c_char_p)), ("name_count", ctypes.c_int64),
        ("scales", ctypes.POINTER(ctypes.c_double)), ("offsets", ctypes.POINTER(ctypes.c_double)), ("unit", ctypes.c_char_p),
    ]


class _Input(ctypes.Structure):
    _fields_ = [("role", ctypes.c_char_p), ("array", ctypes.POINTER(_Array)), ("text", ctypes.c_char_p)]


class _Output(ctypes.Structure):
    _fields_ = [("role", ctypes.c_char_p), ("array", ctypes.POINTER(_Array))]


_Progress = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_double)
_Allocate = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(_Array))
_Message = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)


class _Hooks(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("user", ctypes.c_void_p), ("progress", _Progress), ("allocate", _Allocate),
                ("message", _Message), ("cancellation", ctypes.c_void_p)]


@functools.lru_cache(maxsize=None)
def library():
    """The loaded libhsi."""
    named = os.environ.get("HSI_LIBRARY")
    own = sorted((pathlib.Path(__file__).parent / "lib").glob("libhsi*.so*"))
    path = named or (str(own[0]) if own else "libhsi.so.0")
    try:
        lib = ctypes.CDLL(path)
    except OSError as error:
        raise Error(f"libhsi cannot be loaded: {error}",
                    "Install libhsi0, or set HSI_LIBRARY to the file libhsi.so.0.") from None
    try:
        return _declared(lib)
    except AttributeError as error:
        raise Error(f"{path} is a libhsi of another version: {error}", "Install libhsi0 of this package's version, or set HSI_LIBRARY to the file libhsi.so.0.") from None


def _declared(lib):
    """The library with the types of its functions."""
    lib.hsi_version.restype = lib.hsi_algorithms.restype = ctypes.c_char_p
    lib.hsi_cancellation_new.restype = ctypes.c_void_p
    lib.hsi_cancel.argtypes = lib.hsi_cancellation_free.argtypes = [ctypes.c_void_p]
    lib.hsi_cancel.restype = lib.hsi_cancellation_free.restype = None
    for run in (lib.hsi_run, lib.hsi_plan):
        run.restype = ctypes.c_int
        run.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(_Input), ctypes.c_size_t, ctypes.POINTER(_Output),
                        ctypes.c_size_t, ctypes.POINTER(_Hooks), ctypes.POINTER(ctypes.c_void_p)]
    for name in ("hsi_result_message", "hsi_result_advice", "hsi_result_json"):
        getattr(lib, name).restype = ctypes.c_char_p
        getattr(lib, name).argtypes = [ctypes.c_void_p]
    lib.hsi_result_text.restype = ctypes.c_char_p
    lib.hsi_result_text.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    lib.hsi_result_code.argtypes = lib.hsi_result_free.argtypes = [ctypes.c_void_p]
    lib.hsi_result_free.restype = None
    return lib


def version():
    return library().hsi_version().decode()


@functools.lru_cache(maxsize=None)
def algorithms():
    """The definitions of all algorithms, by name."""
    return {one["name"]: one for one in json.loads(library().hsi_algorithms())}


class Cube:
    """An array as the library takes it: values of shape (bands, lines, samples), as they lie, with what is known of them."""

    def __init__(self, values, *, mask=None, nodata=None, wavelengths=None, widths=None, names=None, scales=None, offsets=None,
                 unit=None):
        self.values, self.mask, self.nodata, self.names, self.unit = values, mask, nodata, names, unit
        self.wavelengths, self.widths, self.scales, self.offsets = wavelengths, widths, scales, offsets


def text(value, what):
    """A text as C has it."""
    try:
        encoded = (str.__str__(value) if isinstance(value, str) else str(value)).encode()  # of a Model its JSON
    except UnicodeEncodeError:
        encoded = b"\0"
    if b"\0" in encoded:
        raise UsageError(f"{what}: {str(value)[:60]!r} has a character that texts cannot have (NUL, or half of a surrogate pair)",
                         "Leave it out.")
    return encoded


def _doubles(values):
    return None if values is None else (ctypes.c_double * len(values))(*values)


def _address(values):
    return values.pointer if isinstance(values, DeviceArray) else values.ctypes.data


def _described(cube, keep):
    """The C structure; `keep` gets what has to live as long."""
    array = _Array(size=ctypes.sizeof(_Array), data=_address(cube.values), type=NUMBERS[cube.values.dtype], device=-1)
    if isinstance(cube.values, DeviceArray):
        array.device, array.stream = cube.values.device, cube.values.stream()[0]
    array.shape[:] = cube.values.shape
    array.strides[:] = cube.values.strides
    keep.append(cube.values)
    if cube.mask is not None:
        array.mask = cube.mask.ctypes.data
        array.mask_strides[:] = cube.mask.strides
        keep.append(cube.mask)
    if cube.nodata is not None:
        array.has_nodata, array.nodata = 1, cube.nodata
    for name, values in (("wavelengths", cube.wavelengths), ("widths", cube.widths), ("scales", cube.scales),
                         ("offsets", cube.offsets)):
        if values is not None:
            keep.append(_doubles(values))
            setattr(array, name, keep[-1])  # an array is a pointer, too; ctypes.cast() leaves cycles behind
    if cube.names is not None:
        names = (ctypes.c_char_p * len(cube.names))(*(None if n is None else text(n, "names") for n in cube.names))
        keep.append(names)
        array.names, array.name_count = names, len(cube.names)
    if cube.unit:
        array.unit = text(cube.unit, "unit")
    keep.append(array)
    return array


class Outcome:
    """What a call has made: arrays and texts by role, and all that it has to tell."""

    def __init__(self, arrays, texts, facts):
        self.arrays, self.texts, self.facts = arrays, texts, facts

    def info(self, role):
        return self.facts.get("outputs", {}).get(role, {})


def call(algorithm, options, inputs, outputs, *, allocate, progress=None, plan=False):
    """Runs an algorithm in this thread's place: on a thread of its own where this is the main one, so that Ctrl-C ends it.

    inputs: role -> Cube or text. outputs: role -> None, or the array (bands, lines, samples) to fill.
    allocate(role, info, shape, dtype) returns such an array. progress(share) may raise what ends the call.
    """
    lib, keep, made, raised = library(), [], {}, []

    def on_progress(_user, done):
        try:
            progress(done)
            return 0
        except BaseException as error:  # noqa: B902 - it is raised again where the call began
            raised.append(error)
            return 1

    def on_allocate(_user, role, info, array):
        try:
            role = role.decode()
            shape = tuple(array.contents.shape)
            made[role] = allocate(role, json.loads(info), shape, DTYPES[array.contents.type])
            if isinstance(made[role], DeviceArray) != (array.contents.device >= 0):
                raise UsageError("the first argument is in host memory, but another argument is on a device",
                                 "Copy one of them.")
            array.contents.data = _address(made[role])
            array.contents.strides[:] = made[role].strides
            return 0
        except MemoryError:
            return 1
        except BaseException as error:  # noqa: B902
            raised.append(error)
            return 1

    hooks = _Hooks(size=ctypes.sizeof(_Hooks), allocate=_Allocate(on_allocate))
    if progress is not None:
        hooks.progress = _Progress(on_progress)
    given = (_Input * max(1, len(inputs)))()
    for slot, (role, value) in zip(given, inputs.items()):
        slot.role = role.encode()
        if isinstance(value, Cube):
            slot.array = ctypes.pointer(_described(value, keep))
        else:
            slot.text = text(value, role)
    wanted = (_Output * max(1, len(outputs)))()
    for slot, (role, value) in zip(wanted, outputs.items()):
        slot.role = role.encode()
        if value is not None:
            slot.array = ctypes.pointer(_described(Cube(value), keep))
            made[role] = value
    told = _options_text(options)
    held = _Held(lib)
    hooks.cancellation, result, run = held.flag.value, held.result, lib.hsi_plan if plan else lib.hsi_run
    arguments = (text(algorithm, "algorithm"), told, given, len(inputs), wanted, len(outputs),
                 ctypes.byref(hooks), ctypes.byref(result))

    def work(_keep=keep):
        try:
            run(*arguments)
        finally:
            held.leave()

    try:
        held.share()
        _run_interruptibly(work, lambda: lib.hsi_cancel(held.flag))
        code = lib.hsi_result_code(result)
        if raised:
            error = raised[0]
            raised.clear()  # an error knows this frame by its traceback, and keeps all arrays of the call while the frame knows it
            try:
                raise error
            finally:
                del error
        if code != OK:
            message = lib.hsi_result_message(result).decode(errors="replace")
            # No file is read here, so that what fails is an argument, or the device.
            kind = Cancelled if code == CANCELLED else Error if code == FAILED and message.startswith(OF_DEVICE) else UsageError
            raise kind(message, lib.hsi_result_advice(result).decode(errors="replace"))
        facts = json.loads(lib.hsi_result_json(result).decode(errors="replace"))
        texts = {role: lib.hsi_result_text(result, role.encode()) for role in outputs}
        return Outcome(made, {role: one.decode(errors="replace") for role, one in texts.items() if one is not None}, facts)
    finally:
        held.leave()


class _Held:
    """What the library has made for a call. The last one who leaves gives it back: the caller, or the thread that still works
    where an interruption has taken the caller away."""

    def __init__(self, lib):
        self._lib, self._others, self.result = lib, [], ctypes.c_void_p()
        self.flag = ctypes.c_void_p(lib.hsi_cancellation_new())

    def share(self):
        self._others.append(True)

    def leave(self):
        try:
            self._others.pop()
        except IndexError:
            self._lib.hsi_result_free(self.result)
            self._lib.hsi_cancellation_free(self.flag)


def _options_text(options):
    """The options as JSON."""
    try:
        return json.dumps(options, allow_nan=False).encode()
    except (TypeError, ValueError):
        pass
    for name, value in options.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise UsageError(f"-{name}: {value!r} is not a finite number, a text, or a list of these", "See the documentation of the function for its values.") from None
    raise UsageError("options have names that are not texts")


class _Workers:
    """Threads that work while the main one waits. They stay for the next call: to start one takes longer than small arrays.

    A handler of signals may raise between any two steps of the main thread. So all that counts threads is done by them, and a
    job that is handed over twice is done once.
    """

    def __init__(self):
        self._jobs, self._idle = queue.SimpleQueue(), []

    def start(self):
        """Sees to it that a thread waits for a job."""
        if not self._idle:
            _thread.start_new_thread(self._serve, (self._jobs, self._idle))

    def hand_over(self, job):
        self._jobs.put(job)

    @staticmethod
    def _serve(jobs, idle):
        idle.append(True)
        while True:
            job = jobs.get()
            idle.pop()
            job(lambda: idle.append(True))
            del job


_workers = _Workers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.__init__)  # a child has no thread but its own


def _run_interruptibly(work, cancel):
    """Does the work, and ends it early where Ctrl-C interrupts: signals reach Python on its main thread, which waits."""
    if threading.current_thread() is not threading.main_thread():
        work()
        return
    over, taken, waiting = [], threading.Lock(), threading.Lock()
    waiting.acquire()

    def job(at_end):
        if not taken.acquire(blocking=False):
            at_end()
            return
        error = None
        try:
            work()
        except BaseException as caught:  # noqa: B902 - raised where the call began
            error = caught
        at_end()
        over.append(error)
        error = None
        waiting.release()

    _workers.start()
    interrupted, handed_over = None, False
    try:
        while not over:
            try:
                if not handed_over:
                    _workers.hand_over(job)
                    handed_over = True
                waiting.acquire()
            except BaseException as error:  # noqa: B902 - KeyboardInterrupt, or what a handler of signals raises
                cancel()
                interrupted = interrupted or error
        failed = interrupted or over[0]
        if failed is not None:
            raise failed
    finally:
        if not over:
            cancel()
        interrupted = failed = None  # they know this frame by their tracebacks
        over.clear()
