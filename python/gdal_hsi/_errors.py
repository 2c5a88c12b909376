# SPDX-License-Identifier: MIT
"""Errors and warnings: a message that says what is wrong, and advice that says what to do about it."""


class Error(Exception):
    """The work could not be done."""

    def __init__(self, message, advice=""):
        super().__init__(message + ("\n" + advice if advice else ""))
        self.message = message
        self.advice = advice

    def __reduce__(self):
        return type(self), (self.message, self.advice)


class UsageError(Error, ValueError):
    """An argument is wrong; nothing was computed."""


class Cancelled(Error):
    """A progress callback has asked for the end."""


class Warning(UserWarning):  # noqa: A001 - gdal_hsi.Warning, as subprocess and warnings have theirs
    """What the user of a result should know."""
