#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks house rules that a compiler does not check: which files may include which headers, and required contents of
sources and documents.

    check_rules.py ROOT         prints each breach as file:line: what, and exits with 1 when there is one
    check_rules.py --self-test  shows that every rule catches its breach

The rules, which docs/architecture.md also states:
- Layers: core <- parallel, math, stream <- cuda, raster <- tool <- terminal. Within raster, the rooms have an order
  (RASTER), and their headers are private; the public headers are in common/raster itself.
- An algorithm (plugins/a) includes core, parallel, math, stream and the public header b/b.h of other algorithms, or
  b/room/room.h if b has rooms (ROOMS).
- gdal_tools include tool, the layers below it, and public headers of algorithms. gdal_tools/gdal_command, which makes
  commands of GDAL from the catalogue, is a second front end and also includes terminal.
- A tool is gdal_tools/gdal_hsi_NAME.cpp, with a folder of its name if it has several files. A file has at most 800
  lines. gdal_tools/shared has the headers that several tools include.
- plugins/arrays contains the tools on arrays: it includes tool, and defines functions that headers of raster declare, but
  no members of their classes, from which it derives.
- GDAL's headers: only in raster, terminal, plugins/gdal, gdal_tools/gdal_command and tests. CUDA's headers, and those of
  common/cuda: only in common/cuda and .cu and .cuh files. MPI's: only in common/parallel/mpi_transport.cpp.
- The start and end of ranks (parallel/ranks.h) are for sources that run a job or a pass (RANKS). Others include at most
  parallel/group.h; gdal_tools do not include it either, since a tool calls Run::ranks().
- Only common/core/system.cpp calls functions that Linux has and POSIX lacks.
- Every source starts with its licence; a build fetches nothing.
- Every tool has a page that the README links to. Links between documents have a target, headings included. Lines of
  documents have at most 120 characters (except rows of tables, which Markdown cannot break).
- The page docs/chains.md lists every tool whose dst can be a virtual scene.
- A function has at most 100 lines, a function of a kernel 150, unless the comment before it contains "Long because".
- A source that a comment, a page or a script names exists.
- A source or its own header includes the headers of the standard library that it uses (STANDARD): the next compiler's
  headers may not include them indirectly.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

CLASS = re.compile(r"^(?:class|struct) (\w+)[^;]*$", re.M)
MEMBER = re.compile(r"^[\w<>,*&:\[\] ]*?\b([A-Z]\w*)::~?\w+\(")
SOURCES = {".cpp", ".h", ".cu", ".cuh"}
COMMON = {  # room -> the rooms whose headers it may include
    "core": {"core"},
    "parallel": {"core", "parallel"},
    "math": {"core", "math"},
    "model": {"core", "model"},
    "cuda": {"core", "parallel", "stream", "cuda"},
    "stream": {"core", "parallel", "math", "stream"},
    "raster": {"core", "parallel", "math", "stream", "raster"},
    "tool": {"core", "parallel", "math", "model", "stream", "raster", "tool"},
    "terminal": {"core", "parallel", "math", "raster", "tool", "terminal"},
}
# The rooms of common/raster: each includes its own headers and the headers of earlier rooms. A header in common/raster
# itself is public, and belongs to the room of its .cpp. A header in a room is private to common/raster and to tests.
RASTER = "gdal codec io tiff metadata hdf5 matlab products libraries files scene output labels".split()
# Algorithms with rooms: the public header of each room is a/room/room.h. A room may include headers of the rooms above
# all rooms, its own headers, and the public headers of the rooms listed after its name.
ROOMS = {"detect": {"pixel": "", "local": "", "groups": "pixel", "fit": "", "tuned": ""}}
# plugins/arrays implements some headers of common/raster for arrays, and shares these private headers with
# common/raster.
ARRAYS = {"nodata_choice", "nodata_value", "numbered_labels", "reader_steps"}
RANKS = {"common/stream/pipeline.cpp", "common/tool/devices.cpp", "common/tool/execute.cpp", "common/tool/execute.h", "common/tool/run.cpp",
         "plugins/sahic/mrf_scene.cpp"}
STANDARD = {
    "algorithm": "all_of any_of binary_search clamp copy copy_n count count_if equal fill fill_n find find_if generate is_sorted "
                 "lower_bound max max_element min min_element minmax_element mismatch none_of nth_element partial_sort "
                 "remove_if reverse rotate shuffle sort stable_sort swap_ranges transform unique upper_bound",
    "cmath": "ceil fabs floor fmod frexp hypot isfinite isinf isnan ldexp llround lround nextafter pow round sqrt trunc",
    "cstdlib": "atoi getenv strtod strtol strtoll strtoul strtoull",
    "cstring": "memcmp memcpy memmove memset strcmp strlen",
    "functional": "function",
    "iterator": "back_inserter",
    "limits": "numeric_limits",
    "numeric": "accumulate gcd inner_product iota lcm partial_sum",
    "sstream": "istringstream ostringstream stringstream",
    "stdexcept": "invalid_argument logic_error out_of_range runtime_error",
}
HEADER_OF = {name: header for header, names in STANDARD.items() for name in names.split()}
STANDARD_NAME = re.compile(r"\bstd::(%s)\b" % "|".join(HEADER_OF))
FOLDERS = ("common", "plugins", "gdal_tools", "tests", "benchmarks")
# The folders of the top level that contain sources to build or tests.
TOP = {"common", "plugins", "gdal_tools", "tests", "benchmarks", "python", "qgis", "cmake"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
GDAL = re.compile(r"^(gdal|ogr|cpl_|vrtdataset|memdataset|rawdataset)[^/]*\.h$")
CUDA = re.compile(r"^(cuda|cu[a-z]+(Lt|Dn|Sp|_v2|Xt)?\.h|cub/|thrust/|cooperative_groups|nvtx|nvrtc|device_launch|mma\.h)")
# Functions of Linux or glibc that POSIX lacks: only common/core/system.cpp calls them.
LINUX = re.compile(r"\b(memfd_create|renameat2|fallocate|posix_fallocate|posix_fadvise|madvise|mincore|mallopt|malloc_trim|O_TMPFILE|"
                   r"O_DIRECT|SYS_\w+|sched_[gs]etaffinity|_SC_PAGE_?SIZE|_SC_PHYS_PAGES|MAP_NORESERVE|MAP_POPULATE|mkostemp|pipe2|"
                   r"eventfd|signalfd|epoll_\w+|prctl)\b|\"/proc/self/(?!mountinfo|cgroup)")
LINUX_HEADER = re.compile(r"^(linux/.*|malloc\.h|sched\.h|sys/(syscall|prctl|eventfd|epoll|inotify|sendfile)\.h)$")
SYSTEM = "common/core/system.cpp"
FETCH = re.compile(r"FetchContent|ExternalProject|file\s*\(\s*DOWNLOAD|https?://", re.IGNORECASE)


def spdx_missing(lines):
    head = lines[1:2] if lines and lines[0].startswith("#!") else lines[:1]
    return not (head and "SPDX-License-Identifier: MIT" in head[0])


def outside_text(line):
    """Returns the line without its comment and without the contents of its strings."""
    return re.sub(r'"(\\.|[^"\\])*"|//.*', '""', line)


def check_system(path, line):
    """Returns the breach of a call that only Linux has, or None."""
    if path.parts[0] not in {"common", "plugins", "gdal_tools"} or path.suffix not in SOURCES or path.as_posix() == SYSTEM:
        return None
    match, include = LINUX.search(re.sub(r"//.*", "", line)), INCLUDE.match(line)
    found = match[0] if match else include[2] if include and LINUX_HEADER.match(include[2]) else None
    return "%s is not POSIX's: ask core/system.h" % found.strip('"') if found else None


def raster_room(root, name, seen=()):
    """Returns the room of a header of common/raster: its folder, or for a public header the room of its .cpp, otherwise
    the last of the rooms that it includes."""
    parts = name.split("/")
    if len(parts) > 2:
        return parts[1]
    sources = list((root / "common/raster").glob("*/" + parts[1].removesuffix(".h") + ".cpp"))
    if sources:
        return sources[0].parent.name
    lines = (root / "common" / name).read_text(encoding="utf-8").splitlines()
    names = [m[2] for m in map(INCLUDE.match, lines) if m and m[2].startswith("raster/") and m[2] not in seen]
    return max([raster_room(root, n, (*seen, name)) for n in names] + RASTER[:1], key=RASTER.index)


def check_raster(root, path, name):
    """Returns the breach of including common/raster's header `name`, or None."""
    public = name.count("/") == 1
    if path.parts[:2] != ("common", "raster"):
        shared = path.parts[:2] == ("plugins", "arrays") and pathlib.Path(name).stem in ARRAYS
        return None if public or shared else '"%s" is private to common/raster' % name
    own = raster_room(root, "/".join(path.parts[1:]))
    if own not in RASTER:
        return "common/raster has the rooms %s" % ", ".join(RASTER)
    room = raster_room(root, name)
    return None if room in RASTER[:RASTER.index(own) + 1] else "raster/%s may not include raster/%s" % (own, room)


def is_door(name):
    """Returns true if a header is the public header of a room of an algorithm (ROOMS)."""
    parts = name.split("/")
    return len(parts) == 3 and parts[1] in ROOMS.get(parts[0], {}) and parts[2] == parts[1] + ".h"


def check_rooms(path, name):
    """Returns the breach of including a header of the same algorithm, if the algorithm has rooms, or None."""
    rooms = ROOMS[path.parts[1]]
    own = path.parts[2] if len(path.parts) > 3 else ""
    to = name.split("/")[1] if name.count("/") > 1 else ""
    for room in filter(None, (own, to)):
        if room not in rooms:
            return "plugins/%s has the rooms %s" % (path.parts[1], ", ".join(rooms))
    if not to or to == own or (own and to in rooms[own].split() and is_door(name)):
        return None
    return '"%s" is not for %s' % (name, "plugins/%s/%s" % (path.parts[1], own) if own else "what the rooms of plugins/%s share" % path.parts[1])


def check_include(root, path, kind, name):
    """Returns the breach of one include, or None. path: relative to root, as parts."""
    top, suffix = path.parts[0], path.suffix
    room = path.parts[1] if len(path.parts) > 2 else None
    cuda_code = suffix in {".cu", ".cuh"}
    for_tests = top in {"tests", "benchmarks"}
    command = top == "gdal_tools" and room == "gdal_command"

    if GDAL.match(name):
        allowed = (for_tests or (top == "common" and room in {"raster", "terminal"}) or (top == "plugins" and room == "gdal")
                   or command)
        return None if allowed else ("GDAL's %s belongs to common/raster, common/terminal, plugins/gdal, "
                                     "gdal_tools/gdal_command and tests" % name)
    if kind == "<":
        if name == "mpi.h" and path.as_posix() != "common/parallel/mpi_transport.cpp":
            return "MPI's header belongs to common/parallel/mpi_transport.cpp, which is the module hsi_mpi.so"
        if name.startswith("nlohmann/") and path.name != "json.h":
            return "the JSON library's headers come through core/json.h, which compiles them once"
        if CUDA.match(name) and not (cuda_code or (top == "common" and room == "cuda")):
            return "CUDA's %s belongs to common/cuda and to .cu and .cuh files" % name
        return None

    if top == "benchmarks" and (root / top / name).is_file():
        return None  # benchmarks have no rooms
    if top == "gdal_tools" and (root / top / name).is_file():
        if room == "shared" and not name.startswith("shared/"):
            return '"%s" is not for gdal_tools/shared, which does not know who uses it' % name
        return None
    if top == "tests" and name == "catalogue.h":
        return None  # tests/support/fork_server.cpp runs any tool
    if "/" not in name:
        return '"%s": headers are included with their room, "room/file.h"' % name
    target = name.split("/")[0]
    if not any((root / folder / name).is_file() for folder in ("common", "plugins", "tests")):
        return '"%s" is none of the headers in common/, plugins/ or tests/' % name
    if target == "cuda" and not (cuda_code or (top == "common" and room == "cuda")):
        return '"%s" belongs to common/cuda and to .cu and .cuh files' % name
    if name == "parallel/ranks.h" and not for_tests and path.parts[:2] != ("common", "parallel") and path.as_posix() not in RANKS:
        return '"%s" is for what runs a job; see parallel/group.h' % name
    if name.startswith("parallel/") and name.split("/")[1] in {"group.h", "ranks.h"} and top == "gdal_tools":
        return '"%s" is not for tools, which ask Run::ranks()' % name
    if target == "raster" and not for_tests:
        breach = check_raster(root, path, name)
        if breach:
            return breach
    if for_tests:
        return None
    if (root / "tests" / name).is_file():
        return '"%s" is for tests and benchmarks' % name
    if top == "common":
        return None if target in COMMON[room] else "%s may not include %s" % (room, target)
    if target in COMMON:
        if target == "cuda":
            return None
        allowed = {"core", "parallel", "math", "model", "stream"}
        if top == "gdal_tools":
            allowed |= {"raster", "tool"}
            if path.name == "gdal_hsi.cpp" or command:
                allowed.add("terminal")
        if top == "plugins" and room in {"gdal", "arrays"}:
            allowed |= {"raster"}
        if top == "plugins" and room == "arrays":
            allowed |= {"tool"}
        return None if target in allowed else "%s may not include %s" % (top + ("/" + room if room else ""), target)
    if target == room and room in ROOMS:
        return check_rooms(path, name)
    if target == room or name == "%s/%s.h" % (target, target) or is_door(name):
        return None
    if top == "gdal_tools" and not re.search(r"(_simd|_kernels|_impl)\.h$|\.cuh$", name):
        return None  # a tool combines the public functions of rooms; inner loops and kernels stay inside
    return '"%s" is private to plugins/%s; its door is %s/%s.h' % (name, target, target, target)


TOOL_LINES = 800


def check_arrays(root):
    """Returns members of classes of common/raster that plugins/arrays defines. A class may have only one definition, so
    arrays must derive from it."""
    declared = {name for file in (root / "common/raster").glob("*.h") for name in CLASS.findall(file.read_text(encoding="utf-8"))}
    return [(file.relative_to(root), number, "%s has a second definition here" % match.group(1))
            for file in sorted((root / "plugins/arrays").glob("*.cpp"))
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
            if (match := MEMBER.match(line)) and match.group(1) in declared]


OWN_NAME = re.compile(r"(?:inline |static )?(?:constexpr|const) [\w:<>, ]+?[ *&](\w+)(?:\[[^\]]*\])? ?[={]|(?:class|struct|enum class|enum) (\w+)[ :{]")


def check_own_names(root):
    """Returns constants and types that two files of a folder define separately: a unity build compiles the files as
    one. (Tools have their own namespaces.)"""
    found, known = [], {}
    for file in sorted(p for folder in ("common", "plugins") for p in (root / folder).rglob("*.cpp")):
        inside = False
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            inside = (inside or line == "namespace {") and line != "} // namespace"
            match = OWN_NAME.match(line) if inside else None
            if not match:
                continue
            name = match[1] or match[2]
            first = known.setdefault((file.parent, name), file)
            if first != file:
                found.append((file.relative_to(root), number, "%s has a definition of its own in %s: a folder is compiled together" % (name, first.name)))
    return found


def check_tools(root):
    """Returns sources next to the tools' own, headers of gdal_tools/shared that only one file includes, files that are
    too long, and parts of a tool that another tool includes."""
    folder, found, users = root / "gdal_tools", [], {}
    for file in sorted(p for p in folder.rglob("*") if p.suffix in SOURCES):
        path = file.relative_to(root)
        if len(path.parts) == 2 and not re.fullmatch(r"gdal_hsi(_\w+)?\.cpp|catalogue\.h", path.name):
            found.append((path, 1, "a tool is one file, gdal_hsi_NAME.cpp; what several share lies in gdal_tools/shared"))
        lines = file.read_text(encoding="utf-8").splitlines()
        if len(lines) > TOOL_LINES:
            found.append((path, TOOL_LINES, "%d lines, more than %d: cut it where its subject changes" % (len(lines), TOOL_LINES)))
        own = path.stem if len(path.parts) == 2 else path.parts[1]
        if path.parts[1].startswith("gdal_hsi_") and len(path.parts) > 2 and not (folder / (own + ".cpp")).exists():
            found.append((path, 1, "a folder belongs to the tool of its name, and there is no %s.cpp" % own))
        for match in filter(None, map(INCLUDE.match, lines)):
            if match[2].startswith("gdal_hsi_") and match[2].split("/")[0] != own:
                found.append((path, 1, '"%s" is a part of another tool' % match[2]))
            if match[2] != "shared/%s.h" % path.stem:
                users.setdefault(match[2], set()).add(path)
    for header in sorted((folder / "shared").glob("*.h")):
        if len(users.get("shared/" + header.name, ())) < 2:
            found.append((header.relative_to(root), 1, "shared by fewer than two files: it belongs in the one that includes it"))
    return found


ROOM = re.compile(r"^hsi_room\((\w+)", re.MULTILINE)
ALL_ONLY = re.compile(r"^\s*hsi_test\((\S+) (?:.*\b)?(?:ALL_ONLY|LABELS)\b", re.MULTILINE)


def check_quick(root):
    """Returns tools and rooms without a test in the quick set. The quick set contains every GoogleTest that is neither
    ALL_ONLY nor labelled, and the Python tests with the mark quick (tests/support/suite.py; also the first test of a
    tool's own file)."""
    found, tests, marked = [], root / "tests", set()
    lists = [file.read_text(encoding="utf-8") for file in sorted(tests.glob("*/CMakeLists.txt"))]
    left_out = {match for text in lists for match in ALL_ONLY.findall(text)}
    included = set()
    for file in sorted(tests.glob("*/*_test.c*")):
        if str(file.relative_to(tests).with_suffix("")) not in left_out:
            included |= {match[2].split("/")[0] for match in map(INCLUDE.match, file.read_text(encoding="utf-8").splitlines()) if match}
            included.add(file.parent.name)
    for file in sorted(tests.glob("*/test_*.py")):
        text = file.read_text(encoding="utf-8")
        if "pytest.mark.quick" in text:
            marked |= set(re.findall(r"gdal_hsi_(\w+)", text))
        if file.parent.name == "cli":
            marked.add(file.stem[len("test_"):])
    for file in sorted((root / "gdal_tools").glob("gdal_hsi_*.cpp")):
        name = file.stem[len("gdal_hsi_"):]
        if not any(name == one or name.startswith(one + "_") for one in marked):
            found.append((file.relative_to(root), 1, "the tool has no test in the quick set: mark one with pytest.mark.quick"))
    for file in sorted([*root.glob("common/*/CMakeLists.txt"), *root.glob("plugins/*/CMakeLists.txt")]):
        if ROOM.search(file.read_text(encoding="utf-8")) and not {file.parent.name} & (included | marked):
            found.append((file.relative_to(root), 1, "the room has no test in the quick set: a GoogleTest that is not ALL_ONLY, or one in Python "
                                                     "with the mark quick"))
    return found


FUNCTION_LINES, KERNEL_LINES = 100, 150
NO_FUNCTION = re.compile(r"^\s*(if|for|while|switch|else|do|try|catch|namespace|struct|class|enum|union|extern|return|case)\b|^\s*\}")


def functions(lines):
    """Returns (first line, lines of the body, whether a comment before it explains its length) of every function in
    clang-format's layout: the closing brace is below the first character of the head."""
    for last, line in enumerate(lines):
        if not re.search(r"\{\s*(//.*)?$", line):
            continue
        first = last
        while first > 0:
            before = lines[first - 1].strip()
            if not before or before.endswith((";", "{", "}", ":", "*/")) or before.startswith(("//", "#", "template")):
                break
            first -= 1
        head = " ".join(text.strip() for text in lines[first:last + 1])
        if NO_FUNCTION.match(head) or "(" not in head or re.search(r"=\s*(\{|\[|.*\()", head.split("(")[0] + "("):
            continue
        indent = len(lines[first]) - len(lines[first].lstrip())
        close = " " * indent + "}"
        end = next((i for i in range(last + 1, len(lines)) if lines[i].startswith(close)), None)
        if end is None:
            continue
        comment = first
        while comment > 0 and lines[comment - 1].strip().startswith(("//", "template")):
            comment -= 1
        yield first + 1, end - last - 1, any("Long because" in text for text in lines[comment:first])


def check_sizes(path, lines):
    """Returns files and functions that are longer than the limits."""
    if path.parts[0] not in {"common", "plugins", "gdal_tools"} or path.suffix not in SOURCES:
        return []
    found = []
    most = KERNEL_LINES if path.suffix in {".cu", ".cuh"} else FUNCTION_LINES
    for number, length, excused in functions(lines):
        if length > most and not excused:
            found.append((path, number, "a function of %d lines, more than %d" % (length, most)))
    return found


LINK = re.compile(r"\]\(([^)#:\s]*)(#[^)\s]*)?\)")
DOCUMENT_WIDTH = 120


def outside_code(lines):
    """Returns (number, line) of the lines outside code blocks."""
    fenced = False
    for number, line in enumerate(lines, 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def check_standard(root, path, lines):
    """Returns names of the standard library whose header is missing, one breach per header."""
    included, found, headers = set(), [], [lines]
    for line in lines:
        match = INCLUDE.match(line)
        if not match or match[1] != '"' or not path.stem.startswith(pathlib.Path(match[2]).stem):
            continue
        for folder in (root / path.parent, *(root / f for f in FOLDERS)):
            if (folder / match[2]).is_file():
                headers.append((folder / match[2]).read_text(encoding="utf-8").splitlines())
                break
    for header in headers:
        included.update(m[2] for m in map(INCLUDE.match, header) if m and m[1] == "<")
    for number, line in enumerate(lines, 1):
        for name in STANDARD_NAME.findall(outside_text(line)):
            if HEADER_OF[name] not in included:
                found.append((path, number, "std::%s is <%s>'s, which is not included" % (name, HEADER_OF[name])))
                included.add(HEADER_OF[name])
    return found


def anchors(lines):
    """Returns the names of headings in links, as GitHub and others form them: lower case, no punctuation, dashes for
    spaces."""
    found = {}
    for _, line in outside_code(lines):
        match = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if match:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match.group(1))
            name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            found[name] = found.get(name, -1) + 1
    return {name + ("-%d" % i if i else "") for name, last in found.items() for i in range(last + 1)}


def check_links(root, file, lines):
    """Returns links of one document whose target is missing."""
    found = []
    for number, line in outside_code(lines):
        for path, anchor in LINK.findall(line):
            target = file.parent / path if path else file
            if not (path or anchor):
                continue
            if not target.exists():
                found.append((file.relative_to(root), number, "%s does not exist" % path))
            elif anchor and target.suffix == ".md" and anchor[1:] not in anchors(target.read_text(encoding="utf-8").splitlines()):
                found.append((file.relative_to(root), number, "%s has no heading for %s" % (path or "the page", anchor)))
    return found


NAMED = re.compile(r"(?<![\w/.*<{$>-])(?<! x )((?:[\w-]+/)*[\w-]{2,}\.(?:h|cuh|cpp|cu))\b(?! x )")
OTHERS = {"highway.h", "cuda.h", "gdal_priv.h", "netcdf.h", "a/a.h", "a_cpu.cpp", "a_cuda.cu", "_test.cpp", "_bench.cpp", "catalogue.cpp"}


def endings(root):
    """Returns every path of a source below ROOT, and each end of it that begins with a folder or is only the name."""
    paths = [p.relative_to(root).parts for folder in FOLDERS for p in (root / folder).rglob("*") if p.suffix in SOURCES]
    return {"/".join(parts[i:]) for parts in paths for i in range(len(parts))}


def check_names(path, lines, known):
    """Returns sources that a comment, a script or a page names, and that do not exist."""
    found = []
    for number, line in enumerate(lines, 1):
        text = line.partition("//")[2] if path.suffix in SOURCES else line
        found += [(path, number, "there is no file %s" % name) for name in NAMED.findall(text)
                  if name not in known | OTHERS and "NAME" not in name]
    return found


COUNTED = re.compile(r"^<!-- counted: (\d+) = (.+) -->$")


def check_tables(path, lines):
    """Returns tables without their second line, with a blank line, or with rows whose number of cells differs from the
    first row."""
    found, width, before = [], 0, 0
    for number, line in outside_code(lines):
        if not line.startswith("|"):
            continue
        cells = len(re.findall(r"(?<!\\)\|", line)) - 1
        width, before = (width if before == number - 1 else 0), number
        if width == 0 and not (number < len(lines) and re.fullmatch(r"\|( *:?-+:? *\|)+", lines[number])):
            found.append((path, number, "a row of a table that has no head"))
        elif width not in (0, cells):
            found.append((path, number, "a row of %d cells in a table of %d" % (cells, width)))
        width = width or cells
    return found


def check_counts(root, path, lines):
    """Returns numbers that a page states and that are wrong for its tree. `<!-- counted: 23 = COMMAND -->` is above the
    paragraph with the number 23, and the command prints this number at the root of the tree."""
    found = []
    for number, line in enumerate(lines, 1):
        match = COUNTED.match(line)
        if not match:
            continue
        paragraph = "\n".join(lines[number:]).split("\n\n")[0]
        counted = subprocess.run(["bash", "-c", match[2]], cwd=root, stdout=subprocess.PIPE, text=True).stdout.strip()
        if counted != match[1]:
            found.append((path, number, "the page says %s, and '%s' prints %s" % (match[1], match[2], counted)))
        elif not re.search(r"\b%s\b" % match[1], paragraph):
            found.append((path, number, "the paragraph does not say %s" % match[1]))
    return found


def check_documents(root, known):
    """Returns links without a target, incomplete tables, wrong numbers, missing sources, long lines, and tools without
    a page or without a line in the README."""
    found = []
    for file in sorted(root.glob("*.md")) + sorted((root / "docs").rglob("*.md")):
        lines = file.read_text(encoding="utf-8").splitlines()
        found += check_links(root, file, lines) + check_tables(file.relative_to(root), lines)
        found += check_counts(root, file.relative_to(root), lines)
        if file.name != "CHANGELOG.md":
            found += check_names(file.relative_to(root), lines, known)
        for number, line in outside_code(lines):
            if len(line) > DOCUMENT_WIDTH and not line.startswith(("|", "![")):
                found.append((file.relative_to(root), number, "%d characters, more than %d" % (len(line), DOCUMENT_WIDTH)))
    chains = root / "docs" / "chains.md"
    section = re.search(r"^## Operations that can be virtual$(.*?)(?=^## |\Z)", chains.read_text(encoding="utf-8") if chains.exists() else "",
                        re.M | re.S)
    for tool in sorted((root / "gdal_tools").glob("gdal_hsi_*.cpp")):
        name = tool.stem.replace("gdal_hsi_", "", 1)
        if ".computes_dst(" in tool.read_text(encoding="utf-8") and "`%s`" % name not in (section.group(1) if section else ""):
            found.append((tool.relative_to(root), 1, "docs/chains.md does not list `%s` as an operation that can be virtual" % name))
    readme = root / "README.md"
    mentioned = readme.read_text(encoding="utf-8") if readme.exists() else ""
    for tool in sorted((root / "gdal_tools").glob("gdal_hsi_*.cpp")):
        if not (root / "docs" / (tool.stem + ".md")).exists():
            found.append((tool.relative_to(root), 1, "the tool has no page docs/%s.md" % tool.stem))
        if "docs/%s.md" % tool.stem not in mentioned:
            found.append((tool.relative_to(root), 1, "the README does not lead to docs/%s.md" % tool.stem))
    return found


def check_tree(root):
    """Returns all breaches as (path, line, text), and the number of files read."""
    known = endings(root)
    found, seen = check_documents(root, known) + check_tools(root) + check_own_names(root) + check_arrays(root) + check_quick(root), 0
    found += [(file.relative_to(root), 1, "the top level has no such folder: what leads into the algorithms is a room of plugins/")
              for file in sorted(root.glob("*/CMakeLists.txt")) if file.parent.name not in TOP]
    files = [p for folder in FOLDERS for p in sorted((root / folder).rglob("*")) if p.is_file()]
    files += sorted(p for p in (root / "cmake").glob("*") if p.is_file()) + [root / "CMakeLists.txt"]
    files += sorted(p for p in (root / "scripts").rglob("*") if p.is_file() and p.suffix != ".pyc")
    for file in files:
        path = file.relative_to(root)
        source = path.suffix in SOURCES
        build = path.name == "CMakeLists.txt" or path.suffix == ".cmake"
        if not (source or build or path.suffix in {".py", ".sh"} or path.parts[0] == "scripts"):
            continue
        seen += 1
        lines = file.read_text(encoding="utf-8").splitlines()
        if path.name != "CMakeLists.txt" and spdx_missing(lines):
            found.append((path, 1, "the first line must be the SPDX line of the licence"))
        # Headers that are compiled once per instruction set (…-inl.h) have a guard that toggles.
        if path.suffix in {".h", ".cuh"} and not path.stem.endswith("-inl") and "#pragma once" not in lines:
            found.append((path, 1, "a header needs #pragma once"))
        if path.parts[0] == "common" and source and (len(path.parts) < 3 or path.parts[1] not in COMMON):
            found.append((path, 1, "no room of common/ is known for this file"))
            continue
        found += check_sizes(path, lines)
        if source or path.parts[0] == "scripts":
            found += check_names(path, lines, known)
        if source:
            found += check_standard(root, path, lines)
        for number, line in enumerate(lines, 1):
            if build and FETCH.search(line):
                found.append((path, number, "nothing is fetched while building"))
            match = INCLUDE.match(line) if source else None
            breach = check_include(root, path, *match.groups()) if match else None
            breach = breach or check_system(path, line)
            if breach:
                found.append((path, number, breach))
    return found, seen


def self_test():
    good = {
        "CMakeLists.txt": "",
        "README.md": "[spp](docs/gdal_hsi_spp.md) [pca](docs/gdal_hsi_pca.md)\n",
        "docs/gdal_hsi_spp.md": "see [the rest](../README.md), [below](#a-heading-with-code), [there](b.md#twice-1)\n"
                                "## A heading, with `code`\n",
        "docs/b.md": "# Twice\n\n# Twice\n```sh\n# no heading\n[no](link.md)\n```\n\n| %s | |\n| --- | --- |\n| a \\| b | c |\n\n"
                     "<!-- counted: 2 = grep -c '^# Twice' docs/b.md -->\nThere are 2 headings.\n" % ("wide " * 40),
        "common/core/rect.h": "#pragma once\n#include <vector>\n",
        "common/parallel/mpi_transport.cpp": "#include <mpi.h>\n",
        "common/parallel/group.h": "#pragma once\n",
        "common/core/system.cpp": '#include <sched.h>\nint a = memfd_create("", 0);\n',
        "common/core/process_limits.cpp": 'int a = open("/proc/self/cgroup"); // fallocate\n',
        "common/parallel/ranks.h": '#pragma once\n#include "parallel/group.h"\n',
        "common/stream/pipeline.cpp": '#include "parallel/ranks.h"\n',
        "plugins/spp/spp_cpu.cpp": '#include "parallel/group.h"\n',
        "tests/support/thread_ranks.h": '#pragma once\n#include "parallel/ranks.h"\n',
        "common/stream/pipeline.h": '#pragma once\n#include "core/rect.h"\n#include <cupid>\n',
        "common/cuda/buffer.h": "#pragma once\n#include <cuda_runtime.h>\n",
        "common/raster/drivers.h": "#pragma once\n#include <gdal_priv.h>\n",
        "common/raster/io/raw_file.h": "#pragma once\n",
        "common/raster/gdal/drivers.cpp": '#include "raster/drivers.h"\n',
        "common/raster/scene/source.cpp": '#include "raster/io/raw_file.h"\n#include "raster/drivers.h"\n#include "stream/pipeline.h"\n',
        "common/raster/output_set.h": '#pragma once\n#include "raster/raster_sink.h"\n',
        "common/raster/raster_sink.h": "#pragma once\n",
        "common/raster/output/raster_sink.cpp": '#include "raster/output_set.h"\n',
        "common/tool/run.h": '#pragma once\n#include "raster/drivers.h"\n',
        "common/terminal/terminal.h": '#pragma once\n#include "tool/run.h"\n',
        "plugins/spp/spp.h": '#pragma once\n#include "stream/pipeline.h"\n#include <algorithm>\n',
        "gdal_tools/catalogue.h": '#pragma once\n',
        "gdal_tools/shared/planes.h": '#pragma once\n#include "tool/run.h"\n',
        "gdal_tools/shared/planes.cpp": '#include "shared/planes.h"\n#include "spp/spp.h"\n',
        "gdal_tools/gdal_command/commands.cpp": '#include "catalogue.h"\n#include "terminal/terminal.h"\n#include <gdalalgorithm.h>\n',
        "plugins/spp/spp_simd.h": '#pragma once\n',
        "gdal_tools/gdal_hsi_pca.cpp": '#include "shared/planes.h"\n',
        "docs/gdal_hsi_pca.md": "\n",
        "tests/cli/test_pca.py": "\n",
        "tests/wild/test_any.py": "pytestmark = pytest.mark.quick\nTOOL = 'gdal_hsi_spp'\n",
        "plugins/mnf/CMakeLists.txt": "hsi_room(mnf SOURCES mnf.cpp)\n",
        "tests/mnf/CMakeLists.txt": "hsi_test(mnf/mnf_test DEPENDS hsi_mnf)\nhsi_test(mnf/large_test ALL_ONLY DEPENDS hsi_mnf)\n",
        "tests/mnf/mnf_test.cpp": "\n",
        "plugins/spp/spp_cuda.cu": '#include "cuda/buffer.h"\n#include "spp/spp_simd.h"\n#include <cublas_v2.h>\n',
        "plugins/spp/a_kernel.cu": "__global__ void f(int* a) {\n%s}\n" % ("    ++*a;\n" * 149),
        "plugins/spp/table.cpp": "// Long because it is a table.\nint f() {\n%s}\n" % ("    ++a;\n" * 200),
        "plugins/spp/lambda.cpp": "int f() {\n%s}\n" % ("    const auto g = [&](int a) {\n        ++a;\n    };\n" * 30),
        "plugins/pca/pca.h": '#pragma once\n#include "spp/spp.h"\n#include "detect/pixel/pixel.h"\n',
        "plugins/detect/detect.h": '#pragma once\n',
        "plugins/detect/pixel/pixel.h": '#pragma once\n#include "detect/detect.h"\n',
        "plugins/detect/pixel/rows.h": '#pragma once\n#include "detect/pixel/pixel.h"\n',
        "plugins/detect/groups/groups.h": '#pragma once\n#include "detect/pixel/pixel.h"\n',
        "gdal_tools/gdal_hsi_spp.cpp": '#include "shared/planes.h"\n#include "tool/run.h"\n#include "spp/spp.h"\n',
        "plugins/spp/spp.cpp": '#include "spp/spp.h"\n// std::max\nint a = std::min(1, 2); // std::sort\n',
        "benchmarks/published/spp.cuh": "#pragma once\n",
        "benchmarks/spp_bench.cu": '#include "published/spp.cuh"\n#include "spp/spp_simd.h"\n',
        "tests/support/cube.h": "#pragma once\n",
        "tests/spp/spp_test.cpp": '#include "spp/spp_simd.h"\n#include "support/cube.h"\n#include <gdal.h>\n',
    }
    bad = {  # each must be found separately
        "core sees stream": {"common/core/a.cpp": '#include "stream/pipeline.h"\n'},
        "stream sees raster": {"common/stream/a.cpp": '#include "raster/drivers.h"\n'},
        "raster sees a room above": {"common/raster/output/x.h": "#pragma once\n",
                                     "common/raster/scene/a.cpp": '#include "raster/output/x.h"\n'},
        "raster sees a public header of a room above": {"common/raster/scene/a.cpp": '#include "raster/raster_sink.h"\n'},
        "raster sees a header that includes one above": {"common/raster/scene/a.cpp": '#include "raster/output_set.h"\n'},
        "raster has no such room": {"common/raster/writers/a.cpp": '#include "raster/drivers.h"\n'},
        "a tool sees a private header of raster": {"gdal_tools/shared/a.cpp": '#include "raster/io/raw_file.h"\n'},
        "raster sees tool": {"common/raster/output/a.cpp": '#include "tool/run.h"\n'},
        "tool sees the terminal": {"common/tool/a.cpp": '#include "terminal/terminal.h"\n'},
        "a tool sees the terminal": {"gdal_tools/shared/a.cpp": '#include "terminal/terminal.h"\n'},
        "an algorithm sees raster": {"plugins/pca/a.cpp": '#include "raster/drivers.h"\n'},
        "an algorithm sees private files": {"plugins/pca/a.cpp": '#include "spp/spp_simd.h"\n'},
        "an algorithm sees private files of a room": {"plugins/pca/a.cpp": '#include "detect/pixel/rows.h"\n'},
        "a room sees private files of another": {"plugins/detect/groups/a.cpp": '#include "detect/pixel/rows.h"\n'},
        "a room sees one that is not below it": {"plugins/detect/fit/a.cpp": '#include "detect/pixel/pixel.h"\n'},
        "what rooms share sees a room": {"plugins/detect/a.cpp": '#include "detect/pixel/pixel.h"\n'},
        "an unknown room of an algorithm": {"plugins/detect/misc/a.cpp": '#include "detect/detect.h"\n'},
        "a tool of two files": {"gdal_tools/spp_outputs.cpp": "\n"},
        "a header of the tools beside shared/": {"gdal_tools/spp_outputs.h": "#pragma once\n"},
        "a shared header without its folder": {"gdal_tools/shared/a.cpp": '#include "planes.h"\n'},
        "a shared header of one tool": {"gdal_tools/gdal_hsi_pca.cpp": "\n"},
        "a shared file sees the catalogue": {"gdal_tools/shared/a.cpp": '#include "catalogue.h"\n'},
        "a tool without a page": {"gdal_tools/gdal_hsi_x.cpp": "\n", "tests/cli/test_x.py": "\n",
                                  "README.md": "docs/gdal_hsi_spp.md docs/gdal_hsi_pca.md docs/gdal_hsi_x.md\n"},
        "a tool that the README forgets": {"gdal_tools/gdal_hsi_x.cpp": "\n", "docs/gdal_hsi_x.md": "\n", "tests/cli/test_x.py": "\n"},
        "a tool without a quick test": {"gdal_tools/gdal_hsi_x.cpp": "\n", "docs/gdal_hsi_x.md": "\n",
                                        "README.md": "docs/gdal_hsi_spp.md docs/gdal_hsi_pca.md docs/gdal_hsi_x.md\n"},
        "a room without a quick GoogleTest": {"tests/mnf/CMakeLists.txt": "hsi_test(mnf/mnf_test ALL_ONLY DEPENDS hsi_mnf)\n"},
        "a room without a test": {"plugins/none/CMakeLists.txt": "hsi_room(none SOURCES a.cpp)\n"},
        "a link that leads nowhere": {"docs/a.md": "[c](c.md)\n"},
        "a link to no heading": {"docs/a.md": "[b](b.md#no-heading)\n"},
        "a link to no heading of its own page": {"docs/a.md": "[b](#twice)\n"},
        "a long line of a document": {"docs/a.md": "word " * 30 + "\n"},
        "a virtual tool that chains.md lacks": {
            "gdal_tools/gdal_hsi_pca.cpp": '#include "shared/planes.h"\nvoid f() { args.computes_dst(); }\n',
            "docs/chains.md": "## Operations that can be virtual\n`spp`\n## Others\n`pca`\n"},
        "a row without its table": {"docs/a.md": "| a | b |\n| --- | --- |\n\n| c | d |\n"},
        "a row of too few cells": {"docs/a.md": "| a | b |\n| --- | --- |\n| c |\n"},
        "a number that is not so": {"docs/a.md": "<!-- counted: 3 = echo 4 -->\nThere are 3.\n"},
        "a number that the page does not say": {"docs/a.md": "<!-- counted: 4 = echo 4 -->\nThere are 3.\n"},
        "a tool sees private files": {"gdal_tools/shared/a.cpp": '#include "spp/spp_simd.h"\n'},
        "GDAL in stream": {"common/stream/a.cpp": "#include <gdal.h>\n"},
        "GDAL in an algorithm": {"plugins/spp/a.cpp": "#include <ogr_spatialref.h>\n"},
        "GDAL in a tool": {"gdal_tools/shared/a.cpp": '#include "gdal_priv.h"\n'},
        "MPI outside of its module": {"common/parallel/ranks.cpp": "#include <mpi.h>\n"},
        "the ranks' start and end in an algorithm": {"plugins/spp/a.cpp": '#include "parallel/ranks.h"\n'},
        "ranks in a tool": {"gdal_tools/gdal_hsi_pca.cpp": '#include "shared/planes.h"\n#include "parallel/group.h"\n'},
        "CUDA in a .cpp": {"plugins/spp/a.cpp": "#include <cuda_runtime_api.h>\n"},
        "cuBLAS in a header": {"plugins/spp/a.h": "#pragma once\n#include <cublas_v2.h>\n"},
        "common/cuda in a .cpp": {"plugins/spp/a.cpp": '#include "cuda/buffer.h"\n'},
        "the pixel functions see tool": {"plugins/gdal/apply.cpp": '#include "tool/run.h"\n'},
        "the pixel functions see the catalogue": {"plugins/gdal/apply.cpp": '#include "catalogue.h"\n'},
        "a bare include": {"plugins/spp/a.cpp": '#include "spp_simd.h"\n'},
        "an unknown header": {"plugins/spp/a.cpp": '#include "spp/none.h"\n'},
        "test support in a tool": {"gdal_tools/shared/a.cpp": '#include "support/cube.h"\n'},
        "a private header of raster in the room of arrays": {
            "plugins/arrays/a.cpp": '#include "raster/io/raw_writer.h"\n', "common/raster/io/raw_writer.h": "#pragma once\n"},
        "a member of a class of raster in the room of arrays": {
            "plugins/arrays/a.cpp": "namespace hsi::raster {\nvoid Sink::write(int) {}\n}\n",
            "common/raster/output/sink.cpp": "\n", "common/raster/sink.h": "#pragma once\nclass Sink final : public Base {\n};\n"},
        "a name that two files of a folder define": {
            "plugins/spp/a.cpp": "namespace {\nconstexpr float no_value = 0;\n} // namespace\n",
            "plugins/spp/b.cpp": "namespace {\nconstexpr int no_value = 1;\n} // namespace\n"},
        "GDAL in tool": {"common/tool/a.cpp": "#include <cpl_error.h>\n"},
        "GDAL in the room of arrays": {"plugins/arrays/a.cpp": "#include <gdal.h>\n"},
        "an unknown folder of the top level": {"library/CMakeLists.txt": "\n"},
        "an unknown room": {"common/misc/a.cpp": "\n"},
        "no pragma once": {"plugins/spp/a.h": "\n"},
        "a long function": {"plugins/spp/a.cpp": "/// What it does.\nint f(int a,\n      int b) {\n%s}\n" % ("    ++a;\n" * 101)},
        "a long method": {"plugins/spp/a.cpp": "struct A {\n    void f() {\n%s    }\n};\n" % ("        ++a;\n" * 101)},
        "a long kernel": {"plugins/spp/a.cu": "__global__ void f(int* a) {\n%s}\n" % ("    ++*a;\n" * 151)},
        "a comment that names no file": {"common/core/a.cpp": "// See core/none.h.\n"},
        "a page that names no file": {"docs/gdal_hsi_spp.md": "`spp_none.cpp`\n"},
        "a standard name without its header": {"common/core/a.cpp": "#include <vector>\nint a = std::max(1, 2);\n"},
        "a call of Linux": {"common/stream/a.cpp": "int a = ::fallocate(1, 0, 0, 9);\n"},
        "a file of Linux": {"plugins/spp/a.cpp": 'int a = open("/proc/self/exe");\n'},
        "a header of Linux": {"common/raster/gdal/a.cpp": "#include <linux/mman.h>\n"},
        "a fetch": {"cmake/X.cmake": "include(FetchContent)\n"},
    }

    def breaches(files, licence=True):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                file = root / name
                file.parent.mkdir(parents=True, exist_ok=True)
                mark = "#" if name.endswith((".txt", ".cmake", ".py")) else "//"
                file.write_text((mark + " SPDX-License-Identifier: MIT\n" if licence else "") + text)
            return check_tree(root)[0]

    failures = ["clean tree: %s:%d: %s" % b for b in breaches(good)]
    for what, files in bad.items():
        if len(breaches({**good, **files})) != 1:
            failures.append("%s: found %s" % (what, breaches({**good, **files})))
    if len(breaches({"CMakeLists.txt": "", "common/core/a.cpp": "\n"}, licence=False)) != 1:
        failures.append("a missing licence line was not found")
    return failures


def main(argument):
    if argument == "--self-test":
        failures = self_test()
        print("\n".join(failures) or "every rule catches its breach")
        return 1 if failures else 0
    found, seen = check_tree(pathlib.Path(argument))
    for path, line, text in found:
        print("%s:%d: %s" % (path, line, text))
    print("%d files checked, %d breaches" % (seen, len(found)))
    return 1 if found or seen == 0 else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
