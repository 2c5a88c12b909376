# SPDX-License-Identifier: MIT
"""Exact statistics of scenes in memory, which merge and can be taken away again: the tools' own file as an object."""
import fractions
import pathlib
import re

import numpy as np

from ._arrays import Model, is_path, model_text
from ._errors import Error, UsageError, warn
from ._library import call
from ._signatures import in_words_of_python

FORMAT = "gdal_hsi_statistics"


def is_statistics(text):
    """Whether a model's text has the format of statistics."""
    return "".join(text[:64].split()).startswith('{"format":"' + FORMAT + '"')


def model_of(text):
    """A model as a call returns it: Statistics where its text says so."""
    return Statistics(text) if is_statistics(text) else Model(text)


class Statistics(Model):
    """Exact statistics of one or more scenes, for the argument statistics of pca, mnf, vd, detect and eadp.

    gdal_hsi.statistics(x) returns them. a + b merges and a - b removes, to the last bit. The text is that of the file of
    gdal_hsi_statistics; save() and load() write and read it.

    Examples
    --------
    >>> import numpy as np
    >>> import gdal_hsi as hsi
    >>> x = np.random.default_rng(0).random((5, 30, 40))
    >>> one, other = hsi.statistics(x[:, :10]), hsi.statistics(x[:, 10:])
    >>> both = one + other
    >>> both.valid_pixels, both.covariance.shape
    (1200, (5, 5))
    >>> np.array_equal((both - other).mean, one.mean)
    True
    """

    __slots__ = ()

    def __new__(cls, text):
        if not is_statistics(text):
            raise UsageError("the text is not a statistics file", "Give the result of statistics(), or Statistics.load(path).")
        return super().__new__(cls, text)

    @classmethod
    def load(cls, path):
        """The statistics of a file of gdal_hsi_statistics, or of save()."""
        return cls(pathlib.Path(path).read_text(encoding="utf-8"))

    def merge(self, other):
        """These and others, which must be of other pixels and the same bands: Statistics, or a path."""
        return self._with("merge", other)

    def subtract(self, other):
        """These without others, each scene of which must be among these: Statistics, or a path."""
        return self._with("remove", other)

    def __add__(self, other):
        return self.merge(other) if isinstance(other, Statistics) else NotImplemented

    def __sub__(self, other):
        return self.subtract(other) if isinstance(other, Statistics) else NotImplemented

    def _with(self, role, other):
        text = model_text(other, "other")
        if not is_statistics(text):
            raise UsageError(f"other is {'the file ' + str(other) if is_path(other) else 'a model'} without statistics",
                             "Give the result of statistics(), or the path of its file.")
        try:
            outcome = call("statistics", {}, {"scene": self, role: text}, {"o": None}, allocate=None)
        except Error as error:
            raise type(error)(*(_in_words(told, role) for told in (error.message, error.advice))) from None
        for told in outcome.facts.get("warnings", []):
            warn(_in_words(told, role))
        return Statistics(outcome.texts["o"])

    @property
    def valid_pixels(self):
        """How many pixels the statistics are of."""
        return self.document["valid_pixels"]

    @property
    def scenes(self):
        """What is known of each scene: name, size, extremes of the bands."""
        return self.document["scenes"]

    @property
    def mean(self):
        """The mean of each band, rounded once."""
        document = self.document
        return np.array([float(one / document["valid_pixels"]) for one in _exact(document["sums"])])

    @property
    def covariance(self):
        """The covariance matrix, bands x bands, divided by the pixels less one; each number rounded once. NaN of a single pixel."""
        document = self.document
        sums, products, count = _exact(document["sums"]), _exact(document["products"]), document["valid_pixels"]
        bands = len(sums)
        matrix = np.full((bands, bands), np.nan)
        if count > 1:
            for a in range(bands):
                for b in range(a + 1):
                    value = (products[a * (a + 1) // 2 + b] - sums[a] * sums[b] / count) / (count - 1)
                    matrix[a, b] = matrix[b, a] = float(value)
        return matrix

    def _facts(self):
        try:
            document = self.document
            count = len(document["scenes"])
            return [f"{document['valid_pixels']} pixels", f"{count} scene{'s' if count != 1 else ''}", f"{len(document['features']['bands'])} bands"]
        except (ValueError, LookupError, TypeError):
            return super()._facts()


def _in_words(text, role):
    """The message with what the method calls its statistics in the place of files and options."""
    text = text.replace(f"-{role} {role}:", "other:").replace(f"'{role}'", "other").replace("'scene'", "this")
    text = re.sub(r"^(.*): the pixels of .* are already in the statistics, from .*$", r"this has the pixels of other already (\1)", text)
    text = re.sub(r"^other: the statistics do not include its scene (.*)$", r"this does not have the pixels of other (\1)", text)
    text = text.replace("Remove that scene first with -remove", "Subtract that scene first")
    return in_words_of_python(text, names={"b", "exclude-range", "mask", "merge", "remove"})


def _exact(parts):
    """The numbers that lists of parts add up to, as fractions."""
    return [sum(map(fractions.Fraction, column)) for column in zip(*parts)]
