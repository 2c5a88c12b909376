# SPDX-License-Identifier: MIT
"""Draws charts as PNG with only the standard library: curves, bars and pictures of one band; letters of 3 x 5 dots."""
import math
import pathlib
import struct
import zlib

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 440, 90, 60, 40, 190
COLOURS = ((31, 119, 180), (214, 39, 40), (44, 160, 44), (148, 103, 189), (255, 127, 14), (23, 190, 207), (120, 120, 120))
# Five rows of three dots, one digit of 0 to 7 per row.
GLYPHS = {
    "0": "75557", "1": "26227", "2": "71747", "3": "71317", "4": "55711", "5": "74717", "6": "74757", "7": "71122",
    "8": "75757", "9": "75717", "A": "25755", "B": "65656", "C": "34443", "D": "65556", "E": "74647", "F": "74644",
    "G": "34553", "H": "55755", "I": "72227", "J": "11152", "K": "55655", "L": "44447", "M": "57755", "N": "65555",
    "O": "25552", "P": "65644", "Q": "25573", "R": "65655", "S": "34216", "T": "72222", "U": "55557", "V": "55552",
    "W": "55775", "X": "55255", "Y": "55222", "Z": "71247", ".": "00002", ",": "00024", "-": "00700", "+": "02720",
    "/": "11244", "%": "51245", "(": "12221", ")": "42224", ":": "02020", "=": "07070", "_": "00007", "^": "25000"}


class Picture:
    """Pixels of three bytes, initially white."""

    def __init__(self, width, height):
        self.width, self.height = width, height
        self.rows = [bytearray(b"\xff" * (3 * width)) for _ in range(height)]

    def fill(self, x0, y0, x1, y1, colour):
        """Fills columns x0 to x1 - 1 of lines y0 to y1 - 1, inside the picture."""
        x0, x1 = max(0, int(x0)), min(self.width, int(x1))
        for y in range(max(0, int(y0)), min(self.height, int(y1))):
            if x1 > x0:
                self.rows[y][3 * x0:3 * x1] = bytes(colour) * (x1 - x0)

    def write(self, path):
        def chunk(name, data):
            return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

        lines = b"".join(b"\0" + row for row in self.rows)  # no filter
        pathlib.Path(path).write_bytes(
            b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))


def text(picture, x, y, words, colour=(0, 0, 0), scale=2, centred=False, right=False):
    words = str(words).upper()
    width = 4 * scale * len(words)
    x = int(x - (width / 2 if centred else width if right else 0))
    for i, letter in enumerate(words):
        for row, bits in enumerate(GLYPHS.get(letter, "00000")):
            for column in range(3):
                if int(bits) >> (2 - column) & 1:
                    top, left = int(y) + row * scale, x + (4 * i + column) * scale
                    picture.fill(left, top, left + scale, top + scale, colour)


def line(picture, x0, y0, x1, y1, colour, width=2):
    steps = int(max(abs(x1 - x0), abs(y1 - y0), 1)) * 2
    for i in range(steps):
        x, y = (int(a + (b - a) * i / (steps - 1)) for a, b in ((x0, x1), (y0, y1)))
        picture.fill(x, y, x + width, y + width, colour)


def ticks(low, high):
    """Returns about five round numbers from low to high."""
    step = 10 ** math.floor(math.log10((high - low) / 5))
    step *= next(f for f in (1, 2, 5, 10) if (high - low) / (step * f) <= 6)
    return [t * step for t in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


class Axes:
    def __init__(self, title, x_name, y_name, low, high):
        self.picture = Picture(WIDTH, HEIGHT)
        pad = 0.05 * (high - low) or abs(high) * 0.05 or 1.0
        self.low, self.high = (0 if low == 0 else low - pad), high + pad
        for tick in ticks(self.low, self.high):
            y = self.y(tick)
            line(self.picture, LEFT, y, WIDTH - RIGHT, y, (225, 225, 225), 1)
            text(self.picture, LEFT - 8, y - 5, f"{tick + 0.0:.6g}", right=True)
        line(self.picture, LEFT, TOP, LEFT, HEIGHT - BOTTOM, (0, 0, 0))
        line(self.picture, LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, (0, 0, 0))
        text(self.picture, WIDTH / 2, 10, title, centred=True)
        text(self.picture, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 22, x_name, centred=True)
        text(self.picture, 6, TOP - 16, y_name)

    def y(self, value):
        return HEIGHT - BOTTOM - (value - self.low) / (self.high - self.low) * (HEIGHT - BOTTOM - TOP)

    def legend(self, names):
        for i, name in enumerate(names):
            y = TOP + 18 * i
            self.picture.fill(WIDTH - RIGHT + 12, y, WIDTH - RIGHT + 22, y + 10, COLOURS[i % len(COLOURS)])
            text(self.picture, WIDTH - RIGHT + 28, y, name)


def curves(path, title, x_name, y_name, series):
    """Draws curves. series: name -> [(x, y)]."""
    points = [p for one in series.values() for p in one]
    axes = Axes(title, x_name, y_name, min(y for _, y in points), max(y for _, y in points))
    x_low, x_high = min(x for x, _ in points), max(x for x, _ in points)
    place = lambda x: LEFT + 20 + (x - x_low) / ((x_high - x_low) or 1) * (WIDTH - RIGHT - LEFT - 40)
    for x in sorted({x for x, _ in points}):
        text(axes.picture, place(x), HEIGHT - BOTTOM + 10, f"{x:.4g}", centred=True)
    for i, one in enumerate(series.values()):
        colour = COLOURS[i % len(COLOURS)]
        for (x0, y0), (x1, y1) in zip(one, one[1:]):
            line(axes.picture, place(x0), axes.y(y0), place(x1), axes.y(y1), colour)
        for x, y in one:
            axes.picture.fill(int(place(x)) - 3, int(axes.y(y)) - 3, int(place(x)) + 4, int(axes.y(y)) + 4, colour)
    axes.legend(series)
    axes.picture.write(path)


def bars(path, title, x_name, y_name, groups, names):
    """Draws bars. groups: name below -> [height of each of names]."""
    axes = Axes(title, x_name, y_name, 0, max(max(v) for v in groups.values()) or 1)
    pitch = (WIDTH - RIGHT - LEFT) / len(groups)
    for g, (name, heights) in enumerate(groups.items()):
        width = 0.8 * pitch / len(names)
        for i, height in enumerate(heights):
            x = int(LEFT + pitch * (g + 0.1) + width * i)
            axes.picture.fill(x, axes.y(height), x + max(1, int(width) - 1), HEIGHT - BOTTOM, COLOURS[i % len(COLOURS)])
        text(axes.picture, LEFT + pitch * (g + 0.5), HEIGHT - BOTTOM + 10, name, centred=True)
    axes.legend(names)
    axes.picture.write(path)


def panels(path, title, planes):
    """Draws planes side by side. planes: name -> lines of numbers; each from black (0 or no number) to white (its
    greatest value)."""
    wide = {name: max(len(plane[0]), 160) + 12 for name, plane in planes.items()}
    picture = Picture(sum(wide.values()), max(len(p) for p in planes.values()) + 60)
    text(picture, 6, 6, title)
    x = 6
    for name, plane in planes.items():
        greatest = max((v for row in plane for v in row if math.isfinite(v)), default=0.0)
        for y, row in enumerate(plane):
            grey = (max(0, min(255, int(255 * v / greatest))) if greatest > 0 and math.isfinite(v) else 0 for v in row)
            picture.rows[24 + y][3 * x:3 * (x + len(row))] = bytes(g for v in grey for g in (v, v, v))
        text(picture, x, 30 + len(plane), name)
        text(picture, x, 44 + len(plane), f"white: {greatest:.2e}")
        x += wide[name]
    picture.write(path)
