# SPDX-License-Identifier: MIT
"""Charts as PNG with GDAL and numpy alone: curves, bars and pictures of one band; letters of 3 x 5 dots."""
import numpy as np
from osgeo import gdal

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 440, 90, 60, 40, 190
COLOURS = ((31, 119, 180), (214, 39, 40), (44, 160, 44), (148, 103, 189), (255, 127, 14), (23, 190, 207), (120, 120, 120))
# Five rows of three dots, a digit of 0 to 7 each.
GLYPHS = {
    "0": "75557", "1": "26227", "2": "71747", "3": "71317", "4": "55711", "5": "74717", "6": "74757", "7": "71122",
    "8": "75757", "9": "75717", "A": "25755", "B": "65656", "C": "34443", "D": "65556", "E": "74647", "F": "74644",
    "G": "34553", "H": "55755", "I": "72227", "J": "11152", "K": "55655", "L": "44447", "M": "57755", "N": "65555",
    "O": "25552", "P": "65644", "Q": "25573", "R": "65655", "S": "34216", "T": "72222", "U": "55557", "V": "55552",
    "W": "55775", "X": "55255", "Y": "55222", "Z": "71247", ".": "00002", ",": "00024", "-": "00700", "+": "02720",
    "/": "11244", "%": "51245", "(": "12221", ")": "42224", ":": "02020", "=": "07070", "_": "00007", "^": "25000"}


def write_png(path, picture):
    """picture: (lines, samples, 3), bytes."""
    memory = gdal.GetDriverByName("MEM").Create("", picture.shape[1], picture.shape[0], 3, gdal.GDT_Byte)
    memory.WriteArray(np.ascontiguousarray(picture.transpose(2, 0, 1)))
    gdal.SetConfigOption("GDAL_PAM_ENABLED", "NO")
    gdal.GetDriverByName("PNG").CreateCopy(str(path), memory)


def text(picture, x, y, words, colour=(0, 0, 0), scale=2, centred=False, right=False):
    words = str(words).upper()
    width = 4 * scale * len(words)
    x = int(x - (width / 2 if centred else width if right else 0))
    for i, letter in enumerate(words):
        for row, bits in enumerate(GLYPHS.get(letter, "00000")):
            for column in range(3):
                if int(bits) >> (2 - column) & 1:
                    top, left = int(y) + row * scale, x + (4 * i + column) * scale
                    if top >= 0 and left >= 0:
                        picture[top:top + scale, left:left + scale] = colour


def line(picture, x0, y0, x1, y1, colour, width=2):
    steps = int(max(abs(x1 - x0), abs(y1 - y0), 1)) * 2
    for x, y in zip(np.linspace(x0, x1, steps), np.linspace(y0, y1, steps)):
        picture[int(y):int(y) + width, int(x):int(x) + width] = colour


def ticks(low, high):
    """Round numbers from low to high, five or so."""
    step = 10 ** np.floor(np.log10((high - low) / 5))
    step *= next(f for f in (1, 2, 5, 10) if (high - low) / (step * f) <= 6)
    return [t for t in np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1) * step]


class Axes:
    def __init__(self, title, x_name, y_name, low, high):
        self.picture = np.full((HEIGHT, WIDTH, 3), 255, np.uint8)
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
            self.picture[y:y + 10, WIDTH - RIGHT + 12:WIDTH - RIGHT + 22] = COLOURS[i % len(COLOURS)]
            text(self.picture, WIDTH - RIGHT + 28, y, name)


def curves(path, title, x_name, y_name, series):
    """series: name -> [(x, y)]."""
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
            axes.picture[int(axes.y(y)) - 3:int(axes.y(y)) + 4, int(place(x)) - 3:int(place(x)) + 4] = colour
    axes.legend(series)
    write_png(path, axes.picture)


def bars(path, title, x_name, y_name, groups, names):
    """groups: name below -> [height of each of names]."""
    axes = Axes(title, x_name, y_name, 0, max(max(v) for v in groups.values()) or 1)
    pitch = (WIDTH - RIGHT - LEFT) / len(groups)
    for g, (name, heights) in enumerate(groups.items()):
        width = 0.8 * pitch / len(names)
        for i, height in enumerate(heights):
            x = int(LEFT + pitch * (g + 0.1) + width * i)
            axes.picture[int(axes.y(height)):HEIGHT - BOTTOM, x:x + max(1, int(width) - 1)] = COLOURS[i % len(COLOURS)]
        text(axes.picture, LEFT + pitch * (g + 0.5), HEIGHT - BOTTOM + 10, name, centred=True)
    axes.legend(names)
    write_png(path, axes.picture)


def panels(path, title, planes):
    """planes: name -> (lines, samples); each from black (0) to white (its greatest value), side by side."""
    height = max(p.shape[0] for p in planes.values())
    picture = np.full((height + 60, sum(max(p.shape[1], 160) + 12 for p in planes.values()), 3), 255, np.uint8)
    text(picture, 6, 6, title)
    x = 6
    for name, plane in planes.items():
        greatest = float(np.nanmax(plane)) if np.isfinite(plane).any() else 0.0
        grey = np.nan_to_num(255 * plane / greatest if greatest > 0 else 0 * plane).astype(np.uint8)
        picture[24:24 + plane.shape[0], x:x + plane.shape[1]] = grey[:, :, None]
        text(picture, x, 30 + plane.shape[0], name)
        text(picture, x, 44 + plane.shape[0], f"white: {greatest:.2e}")
        x += max(plane.shape[1], 160) + 12
    write_png(path, picture)
