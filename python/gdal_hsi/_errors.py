# SPDX-License-Identifier: MIT
"""Errors and warnings: a message that says what is wrong, and advice that says what to do about it."""
import sys
import warnings


class Error(Exception):
    """The work could not be done."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message + ("\n" + advice if advice else ""))
        self.message = message
        self.advice = advice

    def __reduce__(self):  # type: ignore[no-untyped-def]
        return type(self), (self.message, self.advice)


class UsageError(Error, ValueError):
    """An argument is wrong; nothing was computed."""


class MissingFile(Error, FileNotFoundError):
    """A file that a call names does not exist."""


class WrongType(UsageError, TypeError):
    """An argument has a type that the function does not take."""


class Cancelled(Error):
    """A progress callback has asked for the end."""


class Warning(UserWarning):  # noqa: A001 - gdal_hsi.Warning, as subprocess and warnings have theirs
    """What the user of a result should know."""


def warn(text: str, category: type[UserWarning] = Warning) -> None:
    """Warns at the line of the user's code that called the package, directly or through scikit-learn or xarray."""
    level, frame = 2, sys._getframe(1)  # stacklevel 2 is the frame that calls this function
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("gdal_hsi", "sklearn", "joblib"):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
