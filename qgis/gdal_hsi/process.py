# SPDX-License-Identifier: MIT
"""Runs a tool and tells QGIS what it says. Needs of QGIS only the feedback that it is given."""

import codecs
import collections
import queue
import re
import subprocess
import threading

NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # on Windows
PATIENCE = 60  # seconds between the request to end and the end by force
BAR = re.compile(r"0(?:\.+\d{0,3})*(?: - .*)?")  # GDAL's: 0...10...20 ... 100 - done.

Finished = collections.namedtuple("Finished", "code printed errors canceled")


def bar_percent(line):
    """How far the bar is, in percent; None when the line is none."""
    if not BAR.fullmatch(line):
        return None
    ticks = re.match(r"[\d.]*", line).group(0)
    if int(re.findall(r"\d+", ticks)[-1]) % 10:  # the first digits of a number
        ticks = ticks.rstrip("0123456789")
    tens = int(re.findall(r"\d+", ticks)[-1])
    return min(100.0, tens + 2.5 * min(3, len(ticks) - len(ticks.rstrip("."))))


class Lines:
    """Cuts a stream of bytes into lines."""

    def __init__(self):
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.rest = ""

    def feed(self, data):
        """The lines that have ended; what has not is in rest."""
        *lines, self.rest = re.split(r"\r\n|[\r\n]", self.rest + self._decoder.decode(data, final=not data))
        return lines


def read_into(stream, name, events):
    while True:
        data = stream.read1(65536)
        events.put((name, data))
        if not data:
            return


class Teller:
    """Passes on what a tool says."""

    def __init__(self, feedback):
        self.feedback = feedback
        self.printed, self.errors = [], []

    def out(self, line):
        if bar_percent(line) is None and (line or self.printed):
            self.printed.append(line)
            self.feedback.pushConsoleInfo(line)

    def err(self, line):
        if line.startswith("Warning: "):
            self.feedback.pushWarning(line)
        elif line.strip():
            self.errors.append(line)


def run(command, feedback):
    """Runs the command to its end. A canceled run gets SIGTERM and is waited for: the tools then leave nothing
    behind."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               creationflags=NO_WINDOW)
    events = queue.Queue()
    threads = [threading.Thread(target=read_into, args=(stream, name, events), daemon=True)
               for stream, name in ((process.stdout, "out"), (process.stderr, "err"))]
    for thread in threads:
        thread.start()
    teller, lines, open_streams, canceled, waited = Teller(feedback), {"out": Lines(), "err": Lines()}, 2, False, 0.0
    try:
        while open_streams:
            if feedback.isCanceled():
                if not canceled:
                    process.terminate()
                elif waited > PATIENCE:
                    process.kill()
                canceled = True
            try:
                name, data = events.get(timeout=0.1)
            except queue.Empty:
                waited += 0.1 if canceled else 0
                continue
            for line in lines[name].feed(data):
                getattr(teller, name)(line)
            if not data:
                open_streams -= 1
                if lines[name].rest:
                    getattr(teller, name)(lines[name].rest)
            elif name == "out":
                done = bar_percent(lines[name].rest)
                if done is not None:
                    feedback.setProgress(done)
        code = process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        for thread in threads:
            thread.join()
        process.stdout.close()
        process.stderr.close()
    return Finished(code, "\n".join(teller.printed), teller.errors, canceled)


def failure_text(finished, tool):
    """What went wrong, in the tool's own words."""
    if finished.code < 0:
        return "gdal_hsi_%s was ended by signal %d. Did the system run out of memory?" % (tool, -finished.code)
    lines = [re.sub(r"^ERROR: ", "", line) for line in finished.errors]
    lines = [re.sub(r" ?Run '[^']* --help' for all options\.", "", line) for line in lines]
    lines = [line for line in lines if line]
    return "gdal_hsi_%s: %s" % (tool, "\n".join(lines) or "exit code %d without a message" % finished.code)
