# SPDX-License-Identifier: MIT
"""Arrays of netCDF, HDF5 and Zarr give the same scene, labels and masks for any format, order of axes, type of name and
role: orientation and position by coordinates, and missing values by attributes. The expected values are the NumPy array
that was written."""
import base64
import json
import shutil
import struct

import numpy as np
import pytest
from conftest import first_error, gdal, quick_only, read, run, succeed, write_scene
from osgeo import osr

netcdf = pytest.importorskip("netCDF4")
h5py = pytest.importorskip("h5py")

BANDS, LINES, SAMPLES = 4, 7, 6
VALUES = np.arange(1, BANDS * LINES * SAMPLES + 1, dtype="i2").reshape(BANDS, LINES, SAMPLES) * 7
X, Y = 500010 + 20. * np.arange(SAMPLES), 3999990 - 20. * np.arange(LINES)
GRID = (500000, 20, 0, 4000000, 0, -20)
NM = [450., 550., 650., 850.]
UTM = {"grid_mapping_name": "transverse_mercator", "longitude_of_central_meridian": 9.,
       "latitude_of_projection_origin": 0., "scale_factor_at_central_meridian": .9996, "false_easting": 500000.,
       "false_northing": 0., "semi_major_axis": 6378137., "inverse_flattening": 298.257223563}
FORMATS = ["NETCDF4", "NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA", "HDF5 with scales", "Zarr"]


class File:
    """Axes: (name, coordinates or None, attributes). Arrays: name: (axes, values, attributes)."""

    def __init__(self, axes, arrays, attributes=None):
        self.axes, self.arrays, self.attributes = axes, arrays, attributes or {}

    def all_arrays(self):
        lists = {name: ((name,), np.asarray(numbers), attributes) for name, numbers, attributes in self.axes
                 if numbers is not None}
        return {**lists, **self.arrays}

    def sizes(self):
        sizes = {name: len(numbers) for name, numbers, _ in self.axes if numbers is not None}
        for axes, values, _ in self.arrays.values():
            sizes.update(zip(axes, np.shape(values)))
        return sizes

    def write(self, folder, format, group=""):
        writer = {"H": self._hdf5, "Z": self._zarr}.get(format[0], self._netcdf)
        return writer(folder, format, group)

    def _netcdf(self, folder, format, group):
        path = folder / "a.nc"
        with netcdf.Dataset(path, "w", format=format) as d:
            d.setncatts(self.attributes)
            g = d.createGroup(group) if group else d
            for name, size in self.sizes().items():
                g.createDimension(name, size)
            for name, (axes, values, attributes) in self.all_arrays().items():
                fill = attributes.get("_FillValue")
                v = g.createVariable(name, values.dtype, axes, **({} if fill is None else {"fill_value": fill}))
                v.set_auto_maskandscale(False)
                v.setncatts({k: a for k, a in attributes.items() if k != "_FillValue"})
                v[...] = values
        return path

    def _hdf5(self, folder, format, group):
        path = folder / "a.h5"
        with h5py.File(path, "w") as f:
            f.attrs.update(self.attributes)
            g = f.create_group(group) if group else f
            for name, (axes, values, attributes) in self.all_arrays().items():
                g[name] = values
                g[name].attrs.update(attributes)
            if "with scales" in format:
                for name, size in self.sizes().items():
                    if name not in g:
                        g[name] = np.zeros(size, "f4")
                    g[name].make_scale("This is a netCDF dimension but not a netCDF variable." if not any(
                        name == n and numbers is not None for n, numbers, _ in self.axes) else name)
                for name, (axes, values, _) in self.arrays.items():
                    for k, axis in enumerate(axes):
                        g[name].dims[k].attach_scale(g[axis])
        return path

    def _zarr(self, folder, format, group):
        path = folder / "a.zarr"
        where = path / group
        where.mkdir(parents=True)
        for place in {path, where}:
            (place / ".zgroup").write_text('{"zarr_format": 2}')
        (path / ".zattrs").write_text(json.dumps(self.attributes))
        for name, (axes, values, attributes) in self.all_arrays().items():
            values = np.ascontiguousarray(values)
            (where / name).mkdir()
            plain = {k: a.tolist() if hasattr(a, "tolist") else a for k, a in attributes.items()}
            fill = plain.pop("_FillValue", None)
            (where / name / ".zarray").write_text(json.dumps({
                "zarr_format": 2, "shape": values.shape, "chunks": values.shape or [], "dtype": values.dtype.str,
                "compressor": None, "fill_value": "NaN" if fill is not None and fill != fill else fill, "order": "C",
                "filters": None}))
            (where / name / ".zattrs").write_text(json.dumps({"_ARRAY_DIMENSIONS": list(axes), **plain}))
            (where / name / ".".join("0" * max(1, values.ndim))).write_bytes(values.tobytes())
        return path


def scene(order="bls", values=VALUES, attributes=None, x=X, y=Y, names=("wavelength", "y", "x"), nm=("f8", NM, "nm"),
          arrays=None, of_x=None, of_y=None, name="cube", mapping=UTM):
    """Returns the cube in the order of its axes; values (bands, lines, samples) are in the order of the coordinates."""
    kinds, numbers, unit = nm
    axes = [(names[0], None if numbers is None else np.array(numbers, kinds), {"units": unit} if unit else {}),
            (names[1], y, of_y or {}), (names[2], x, of_x or {})]
    turned = ["bls".index(k) for k in order]
    more = dict(arrays or {})
    told = dict(attributes or {})
    if mapping:
        more["crs"] = ((), np.array(0, "i4"), mapping)
        told["grid_mapping"] = "crs"
    return File(axes, {name: (tuple(names[k] for k in turned), np.ascontiguousarray(values.transpose(turned)), told), **more})


def seen(path, folder):
    """Returns the tools' view: values as doubles, NaN where missing, the geotransform and the wavelengths."""
    out = folder / "seen.tif"
    said = succeed(run("gdal_hsi_pipeline", "-q", f"read '{path}' ! write '{out}' -overwrite"))
    dataset = gdal.Open(str(out))
    values = dataset.ReadAsArray().astype("f8").reshape(-1, dataset.RasterYSize, dataset.RasterXSize)
    nodata = dataset.GetRasterBand(1).GetNoDataValue()
    if nodata is not None:
        values[values == nodata] = np.nan
    dataset.said = said.err + said.out
    return values, dataset


def valid_pixels(path):
    return json.loads(succeed(run("gdal_hsi_info", "-json", "-count", path)).out)["valid_pixels"]


def check(path, folder, want=VALUES, grid=GRID):
    got, dataset = seen(path, folder)
    np.testing.assert_array_equal(got, np.asarray(want, "f8"))
    told = dataset.GetGeoTransform(can_return_null=True)
    assert told == grid if grid is None else np.allclose(told, grid, atol=1e-6), told
    return dataset


@pytest.mark.parametrize("format", FORMATS + ["HDF5"])
@pytest.mark.parametrize("order", ["bls", "lsb", "sbl", "bsl"])
def test_orders_and_directions(tmp_path, format, order):
    for k, (y_turn, x_turn) in enumerate([(1, 1), (-1, 1), (1, -1), (-1, -1)]):
        folder = tmp_path / str(k)
        folder.mkdir()
        path = scene(order, VALUES[:, ::y_turn, ::x_turn], x=X[::x_turn], y=Y[::y_turn]).write(folder, format)
        dataset = check(path, folder)
        wanted = osr.SpatialReference()
        wanted.ImportFromEPSG(32632)
        assert dataset.GetSpatialRef().IsSame(wanted)
        told = json.loads(succeed(run("gdal_hsi_info", "-json", path)).out)
        assert told["wavelengths_nm"] == NM


@pytest.mark.parametrize("order", ["bls", "lsb"])
def test_attributes_of_the_file_are_kept(tmp_path, order):
    file = scene(order)
    file.attributes = {"title": "Flight 7", "levels": np.array([1, 2], "i4")}
    items = check(file.write(tmp_path, "NETCDF4"), tmp_path).GetMetadata()
    assert items["NC_GLOBAL#title"] == "Flight 7" and items["NC_GLOBAL#levels"] == "{1,2}"


@pytest.mark.quick
def test_windows_of_turned_arrays(tmp_path):
    path = scene("lsb", VALUES[:, ::-1, ::-1], x=X[::-1], y=Y[::-1]).write(tmp_path, "NETCDF4")
    for x, y, w, h in [(1, 2, 3, 4), (0, 0, 2, 2), (4, 5, 2, 2)]:
        out = tmp_path / f"{x}.tif"
        succeed(run("gdal_hsi_pipeline", "-q", f"read '{path}' -srcwin {x} {y} {w} {h} ! write '{out}'"))
        dataset = gdal.Open(str(out))
        np.testing.assert_array_equal(dataset.ReadAsArray(), VALUES[:, y:y + h, x:x + w])
        np.testing.assert_allclose(dataset.GetGeoTransform(), (500000 + 20 * x, 20, 0, 4000000 - 20 * y, 0, -20))


def test_lookup_table(tmp_path):
    sample, line = np.meshgrid(np.arange(1, SAMPLES + 1), np.arange(1, LINES + 1))
    table = np.stack([sample, line]).astype("i4")[:, ::-1]
    path = File([("y", Y[::-1], {}), ("x", X, {})], {"glt": (("k", "y", "x"), np.ascontiguousarray(table), {})}).write(
        tmp_path, "NETCDF4")
    image = write_scene(tmp_path / "s.dat", VALUES.astype("f4"), "ENVI", "f4", geotransform=None, epsg=None)
    succeed(run("gdal_hsi_orthorectify", "-q", "-glt", path, image, tmp_path / "o.tif"))
    np.testing.assert_array_equal(read(tmp_path / "o.tif"), VALUES)


@pytest.mark.parametrize("format", ["NETCDF4", "HDF5 with scales"])
def test_lookup_table_in_two_arrays(tmp_path, format):
    sample, line = np.meshgrid(np.arange(1, SAMPLES + 1), np.arange(1, LINES + 1))
    sample, line = sample[:, ::-1], line[::-1]
    path = File([("y", Y, {}), ("x", X, {})], {
        "glt_y": (("y", "x"), line.astype("i4"), {}), "glt_x": (("y", "x"), sample.astype("i4"), {})}).write(tmp_path, format)
    image = write_scene(tmp_path / "s.dat", VALUES.astype("f4"), "ENVI", "f4", geotransform=None, epsg=None)
    succeed(run("gdal_hsi_orthorectify", "-q", "-glt", path, image, tmp_path / "o.tif"))
    np.testing.assert_array_equal(read(tmp_path / "o.tif"), VALUES[:, ::-1, ::-1])


def test_bands_in_arrays_of_their_own(tmp_path):
    """GDAL writes one netCDF variable per band; more than nine must keep their order."""
    values = np.concatenate([VALUES, VALUES + 1000, VALUES + 2000])
    values[3, 1, 2] = -9999
    image = write_scene(tmp_path / "s.tif", values, "GTiff", "i2", geotransform=GRID, epsg=32632)
    source = gdal.Open(str(image), gdal.GA_Update)
    for b in range(len(values)):
        source.GetRasterBand(b + 1).SetNoDataValue(-9999)
        source.GetRasterBand(b + 1).SetMetadata({"wavelength": str(450 + 10 * b), "wavelength_units": "Nanometers"})
    source = None
    gdal.Translate(str(tmp_path / "a.nc"), str(image), format="netCDF")
    want = values.astype("f8")
    want[:, 1, 2] = np.nan
    check(tmp_path / "a.nc", tmp_path, want)
    told = json.loads(succeed(run("gdal_hsi_info", "-json", tmp_path / "a.nc")).out)
    assert told["wavelengths_nm"] == [450 + 10 * b for b in range(len(values))]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["Band{}", "band_{:02}", "B{}", "b{:03}", "Band {}"])
def test_names_of_arrays_that_are_bands(tmp_path, format, name):
    """The wavelengths may be texts with units."""
    path = File([("y", Y, {}), ("x", X, {})], {name.format(b + 1): (("y", "x"), VALUES[b], {"wavelength": f"{NM[b] / 1000:g} um"})
                                               for b in range(BANDS)}).write(tmp_path, format)
    check(path, tmp_path)
    assert json.loads(succeed(run("gdal_hsi_info", "-json", path)).out)["wavelengths_nm"] == NM


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["reflectance", "radiance", "products", "HDFEOS", "toa radiance"])
def test_arrays_of_any_name(tmp_path, format, name):
    """Uses the names that agencies give to groups of their products."""
    for order in ("bls", "lsb"):
        for group in ("", name) if format in ("NETCDF4", "HDF5 with scales", "Zarr") and name == "products" else ("",):
            folder = tmp_path / (order + group)
            folder.mkdir()
            check(scene(order, name=name).write(folder, format, group), folder)


WGS84_FIGURES = {"semi_major_axis": 6378137., "inverse_flattening": 298.257223563}
PROJECTIONS = [
    (3035, {"grid_mapping_name": "lambert_azimuthal_equal_area", "latitude_of_projection_origin": 52.,
            "longitude_of_projection_origin": 10., "false_easting": 4321000., "false_northing": 3210000.,
            "semi_major_axis": 6378137., "inverse_flattening": 298.257222101}),
    (2154, {"grid_mapping_name": "lambert_conformal_conic", "standard_parallel": np.array([49., 44.]),
            "latitude_of_projection_origin": 46.5, "longitude_of_central_meridian": 3., "false_easting": 700000.,
            "false_northing": 6600000., "semi_major_axis": 6378137., "inverse_flattening": 298.257222101}),
    (3413, {"grid_mapping_name": "polar_stereographic", "straight_vertical_longitude_from_pole": -45.,
            "latitude_of_projection_origin": 90., "standard_parallel": 70., "false_easting": 0., "false_northing": 0.,
            **WGS84_FIGURES}),
    (32733, {**UTM, "longitude_of_central_meridian": 15., "false_northing": 1e7}),
]


@pytest.mark.parametrize("code, mapping", PROJECTIONS, ids=[str(row[0]) for row in PROJECTIONS])
def test_grid_mappings_by_parameters(tmp_path, code, mapping):
    """A position has the same coordinates in both reference systems."""
    for format in FORMATS:
        folder = tmp_path / format
        folder.mkdir()
        told = check(scene("lsb", mapping=mapping).write(folder, format), folder).GetSpatialRef()
        wanted = osr.SpatialReference()
        wanted.ImportFromEPSG(code)
        for srs in (told, wanted):
            srs.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
        there = osr.CoordinateTransformation(told, wanted).TransformPoint(5e5, 4e6)
        np.testing.assert_allclose(there[:2], (5e5, 4e6), atol=1e-3)


@pytest.mark.parametrize("format", FORMATS)
def test_names_groups_and_more_axes(tmp_path, format):
    prefix = {"H": "HDF5", "Z": "ZARR"}.get(format[0], "NETCDF")
    grouped = format not in ("NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA")
    for k, group in enumerate(["", "science"] if grouped else [""]):
        folder = tmp_path / str(k)
        folder.mkdir()
        path = scene("lsb").write(folder, format, group)
        slashes = "//" if prefix == "HDF5" else "/"
        name = f'{prefix}:"{path}":{slashes}{group + "/" if group else ""}cube'
        check(path, folder)
        check(name, folder)
    for axes in (("time", "wavelength", "y", "x"), ("wavelength", "time", "y", "x"), ("y", "x", "time", "wavelength")):
        folder = tmp_path / "-".join(axes)
        folder.mkdir()
        one = scene()
        place = axes.index("time")
        turned = VALUES.transpose([("wavelength", "y", "x").index(a) for a in axes if a != "time"])
        one.axes.append(("time", np.array([3.]), {"units": "days since 2000-01-01"}))
        one.arrays["cube"] = (axes, np.expand_dims(turned, place), one.arrays["cube"][2])
        check(one.write(folder, format), folder)
    several = scene()
    several.axes.append(("time", np.array([3., 5.]), {"units": "days since 2000-01-01"}))
    several.arrays["cube"] = (("time", "wavelength", "y", "x"), np.stack([VALUES, VALUES]), several.arrays["cube"][2])
    folder = tmp_path / "several"
    folder.mkdir()
    result = run("gdal_hsi_info", several.write(folder, format))
    assert result.code == 1 and "has 2 times (3, 5 days since 2000-01-01)" in first_error(result), result.err
    assert "gdalmdimtranslate" in result.err


I2 = np.int16
INVALID = [  # type of the samples, attributes, sample that stands for no value, one that is a value
    ("i2", {"_FillValue": I2(-9999)}, -9999, -9998),
    ("i2", {"_FillValue": I2(-9999), "missing_value": I2(-999)}, -999, -998),
    ("i2", {"missing_value": np.array([-999, -998], "i2")}, -998, -997),
    ("i2", {"_FillValue": I2(-9999), "valid_range": np.array([0, 16000], "i2"), "scale_factor": 1e-4}, 16001, 16000),
    ("i2", {"valid_min": I2(0)}, -1, 0),
    ("i2", {"valid_min": -.2, "valid_max": 1.5, "scale_factor": 1e-4}, 15001, 15000),
    ("i2", {"valid_min": -.2, "valid_max": 1.5, "scale_factor": 1e-4}, -2001, -2000),
    ("i2", {"valid_range": np.array([0., 16000.]), "scale_factor": 1e-4}, 16001, 16000),
    ("f4", {"_FillValue": np.float32(-9999)}, -9999, -9998),
    ("f4", {"_FillValue": np.float32("nan")}, np.nan, 3),
    ("f4", {"valid_max": np.float32(1.1), "_FillValue": np.float32(-1)}, 1.2, np.float32(1.1)),
    ("f4", {"valid_range": np.array([0., 1.1])}, 1.2, np.float32(1.1)),
    ("f4", {"valid_range": np.array([0., 300.]), "scale_factor": .01}, 301, 300),
    ("f4", {"valid_min": -2., "valid_max": 3., "scale_factor": 10., "add_offset": 5.}, -3, 3),
    ("i2", {"valid_range": np.array([0, 300], "i4"), "scale_factor": .1}, 301, 300),
    ("f8", {"missing_value": -1e30, "_FillValue": 1e30}, -1e30, -1e29),
    ("f4", {"missing_value": np.float32(-3.402823e38)}, np.float32(-3.4028235e38), np.float32(-1e30)),
    ("f4", {"missing_value": "-3.4028e+38", "_FillValue": np.float32(-9999)}, np.float32(-3.4028235e38), np.float32(-1e30)),
    ("f4", {"missing_value": np.array([1.2345677e20], "f4"), "_FillValue": np.float32(-1)}, np.float32(1.2345678e20), np.float32(1e19)),
    ("i4", {"_FillValue": np.int32(-2**31), "valid_max": np.int32(2**24)}, 2**24 + 1, 2**24),
]
UNSIGNED = [
    ("i1", {"_Unsigned": "true", "_FillValue": np.int8(-1)}, -1, -2, 254),
    ("i2", {"_Unsigned": "true", "_FillValue": I2(-1)}, -1, -2, 65534),
    ("i2", {"_Unsigned": "true", "_FillValue": I2(-1), "valid_range": np.array([0, -3], "i2")}, -2, -3, 65533),
]


@pytest.mark.parametrize("format", quick_only(FORMATS[0], FORMATS))
def test_samples_without_a_value(tmp_path, format):
    table = [(*row[:4], row[3]) for row in INVALID] + UNSIGNED
    for k, (kind, attributes, none, some, meant) in enumerate(table):
        for order in ("bls", "lsb"):
            folder = tmp_path / f"{k}{order}"
            folder.mkdir()
            values = np.full(VALUES.shape, 1, kind)
            values[:, 2, 3], values[:, 4, 1] = none, some
            want = np.full(VALUES.shape, 1.)
            want[:, 2, 3], want[:, 4, 1] = np.nan, meant
            path = scene(order, values, attributes).write(folder, format)
            if np.dtype(kind).itemsize > 2 and kind != "f4":  # no step of a pipeline stores these types
                assert valid_pixels(path) == LINES * SAMPLES - 1, (kind, attributes, order)
                continue
            got, _ = seen(path, folder)
            np.testing.assert_array_equal(got, want, err_msg=str((kind, attributes, order)))


@pytest.mark.parametrize("format", [f for f in FORMATS if f != "NETCDF3_CLASSIC"])
@pytest.mark.parametrize("kind, attributes, none, some, meant", [
    ("u1", {"_Unsigned": "false"}, None, 200, -56), ("u2", {"_Unsigned": "false"}, None, 60000, -5536),
    ("u1", {"_Unsigned": "false", "missing_value": np.uint8(255)}, 255, 254, -2),
    ("u1", {"missing_value": np.int8(-1)}, 255, 254, 254), ("u2", {"missing_value": I2(-1)}, 65535, 65534, 65534)])
def test_signs_of_unsigned_samples(tmp_path, format, kind, attributes, none, some, meant):
    values = np.full(VALUES.shape, 1, kind)
    values[:, 4, 1] = some
    want = np.full(VALUES.shape, 1.)
    want[:, 4, 1] = meant
    if none is not None:
        values[:, 2, 3], want[:, 2, 3] = none, np.nan
    check(scene("lsb", values, attributes).write(tmp_path, format), tmp_path, want)


def test_fill_values_in_base64(tmp_path):
    """As xarray writes them into Zarr."""
    path = scene("lsb", np.where(VALUES == 7, -9999, VALUES).astype("f4"),
                 {"_FillValue": 0.}).write(tmp_path, "Zarr")
    told = path / "cube" / ".zattrs"
    packed = base64.standard_b64encode(struct.pack("<d", -9999.)).decode()
    told.write_text(json.dumps({**json.loads(told.read_text()), "_FillValue": packed}))
    check(path, tmp_path, np.where((VALUES == 7).any(0), np.nan, VALUES))
    assert valid_pixels(path) == LINES * SAMPLES - 1


def test_float_samples_are_masked_as_gdal_does(tmp_path):
    """GDAL's raster driver is the reference."""
    for k, (kind, attributes, none, some) in enumerate(row for row in INVALID if row[0] == "f4" and "valid_range" in row[1]):
        values = np.full(VALUES.shape, 1, kind)
        values[:, LINES // 2, 3], values[:, LINES // 2, 1] = none, some  # for either order of lines
        folder = tmp_path / str(k)
        folder.mkdir()
        path = scene("bls", values, attributes).write(folder, "NETCDF4")
        dataset = gdal.Open(f'NETCDF:"{path}":cube')
        nodata, band = dataset.GetRasterBand(1).GetNoDataValue(), dataset.ReadAsArray()[0]
        mask = np.isfinite(band) & (band != np.float32(nodata))
        np.testing.assert_array_equal(np.isfinite(seen(path, folder)[0][0]), mask, err_msg=str(attributes))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("attributes, told", [
    ({"missing_value": 3.5}, "missing_value 3.5 is ignored: Int16 cannot store it"),
    ({"missing_value": np.array([-9999., 1e6])}, "missing_value 1000000 is ignored: Int16 cannot store it"),
    ({"valid_range": np.array([0, 1, 2], "i2")}, "valid_range is ignored: it has 3 numbers, not 2"),
    ({"valid_max": np.array([0, 1], "i2")}, "valid_max is ignored: it has 2 numbers, not 1")])
def test_attributes_that_cannot_be_are_told(tmp_path, format, attributes, told):
    path = scene(attributes=attributes).write(tmp_path, format)
    check(path, tmp_path)
    assert told in succeed(run("gdal_hsi_info", path)).err


@pytest.mark.parametrize("format", FORMATS)
def test_other_names_of_fill_values(tmp_path, format):
    values, want = VALUES.copy(), VALUES.astype("f8")
    values[:, 2, 3], want[:, 2, 3] = -99, np.nan
    texts = (I2(-99), np.float64(-99), "-99.0", "-99s", np.full(BANDS, -99.))
    for k, name in enumerate(("FillValue", "fill_value", "nodata", "NoDataValue", "Data_Ignore_Value", "MissingValue",
                              "nodatavals", "bad_value", "ignore_value", "null_value", "invalid_value")):
        for value in texts if k == 0 else texts[k % 5:][:1]:
            folder = tmp_path / f"{name}{type(value).__name__}{len(str(value))}"
            folder.mkdir()
            check(scene("lsb", values, {name: value}).write(folder, format), folder, want)
    # Attributes of the file apply if the array has none.
    for name, own in (("data ignore value", {}), ("missing_value", {}), ("nodata", {"nodata": I2(-99)})):
        folder = tmp_path / f"of the file {name}"
        folder.mkdir()
        one = scene("lsb", values, own)
        one.attributes = {name: 7. if own else -99.}
        check(one.write(folder, format), folder, want)


@pytest.mark.parametrize("format", ["NETCDF4", "NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA"])
@pytest.mark.parametrize("kind", ["i2", "i4", "f4", "f8"])
def test_fill_values_that_nobody_writes_down(tmp_path, format, kind):
    fill = netcdf.default_fillvals[kind]
    values = VALUES.astype(kind)
    values[:, 1, 2] = fill
    assert valid_pixels(scene("lsb", values).write(tmp_path, format)) == LINES * SAMPLES - 1


def test_fill_property_of_hdf5(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        d = f.create_dataset("cube", VALUES.shape, "f4", fillvalue=-9999., chunks=(BANDS, 1, SAMPLES))
        d[:, :3] = VALUES[:, :3]
    want = VALUES.astype("f8")
    want[:, 3:] = np.nan
    check(tmp_path / "a.h5", tmp_path, want, None)


@pytest.mark.parametrize("name, numbers, unit, attributes", [
    ("wavelength", np.array(NM, "f4") / 1000, "um", {}), ("wavelength", np.array(NM) * 1e-9, "m", {}),
    ("centre", NM, "nm", {}), ("wvl", np.array(NM, "i2") * 10, "nm", {"scale_factor": .1}),
    ("wavelength", np.array(NM, "i2") - 400, "nm", {"add_offset": 400.}), ("bands", NM, "nanometers", {})])
def test_wavelengths(tmp_path, name, numbers, unit, attributes):
    for format in FORMATS:
        folder = tmp_path / format
        folder.mkdir()
        one = scene("lsb", names=("band", "y", "x"), nm=("f8", None, None))
        one.arrays[name] = (("band",), np.asarray(numbers), {"units": unit, **attributes})
        told = json.loads(succeed(run("gdal_hsi_info", "-json", one.write(folder, format))).out)
        np.testing.assert_allclose(told["wavelengths_nm"], NM, rtol=1e-6)


@pytest.mark.parametrize("name", ["wl", "lambda", "band_centers", "centers", "wavenumber", "Lambda_um", "wl_nm", "BandCenter"])
@pytest.mark.parametrize("place", ["beside", "another group", "of the cube", "of the group", "of the file"])
def test_wavelengths_of_hdf5_without_scales(tmp_path, name, place):
    """Lists next to the cube or in another group, and attributes; the unit is in the name, in an attribute, or
    missing."""
    unit = "cm-1" if name == "wavenumber" else "um" if name.endswith("um") else "nm"
    numbers = np.array([{"nm": w, "um": w / 1000, "cm-1": 1e7 / w}[unit] for w in NM])
    for stated in (False, True):
        path = tmp_path / f"{stated}.h5"
        with h5py.File(path, "w") as f:
            f["a/scene/cube"] = VALUES.transpose(1, 2, 0)
            f["a/other/cover"] = np.zeros((3, 5), "u1")
            if place in ("beside", "another group"):
                where = "a/scene/" if place == "beside" else "a/facts/"
                f[where + name] = numbers
                if stated:
                    f[where + name].attrs["unit"] = unit
            else:
                attributes = f[{"of the cube": "a/scene/cube", "of the group": "a/scene", "of the file": "/"}[place]].attrs
                attributes[name] = numbers
                if stated:
                    attributes[name + "_units"] = unit
        said = succeed(run("gdal_hsi_info", "-json", path))
        np.testing.assert_allclose(json.loads(said.out)["wavelengths_nm"], NM, rtol=1e-6)
        known = stated or name in ("wavenumber", "Lambda_um", "wl_nm")
        assert ("the wavelengths are taken from" in said.err) == (not known), said.err
        assert ("nanometres are assumed" in said.err) == (not known), said.err
        check(path, tmp_path, grid=None)


ROWS = {  # lists of wavelengths as programs write them; attributes contain numbers as texts
    "1 x B": np.array(NM)[None], "B x 1": np.array(NM)[:, None], "1 x B x 1": np.array(NM)[None, :, None],
    "texts": np.array([str(w) for w in NM], "S8"), "texts of any length": [str(w) for w in NM],
    "a row of texts": np.array([str(w) for w in NM], "S8")[None],
    "braces": "{450, 550, 650.0 , 850}", "brackets": json.dumps(NM), "a text each": [f"{w} " for w in NM]}


@pytest.mark.parametrize("kind", ROWS)
def test_wavelengths_in_rows_and_texts(tmp_path, kind):
    """They equal the wavelengths of a plain list, and identify the band axis."""
    for order, name in (("bls", "wavelength"), ("lsb", "wl_nm")):
        path = tmp_path / f"{order}{name}.h5"
        with h5py.File(path, "w") as f:
            f["cube"] = VALUES.transpose(["bls".index(k) for k in order])
            if kind in ("braces", "brackets", "a text each"):
                f["cube"].attrs[name] = ROWS[kind]
            else:
                f[name] = ROWS[kind]
        told = json.loads(succeed(run("gdal_hsi_info", "-json", path)).out)
        assert told["size"] == [SAMPLES, LINES, BANDS] and told["wavelengths_nm"] == NM, told
        check(path, tmp_path, grid=None)


def test_libraries_next_to_rows(tmp_path):
    spectra = np.array([[.1, .5, .2, .7], [.6, .1, .3, .2]])
    cover = np.linspace(0, 1, LINES * SAMPLES).reshape(LINES, SAMPLES)
    image = write_scene(tmp_path / "s.tif", np.einsum("kls,kb->bls", np.stack([cover, 1 - cover]), spectra), "GTiff", "f4")
    for kind in ("1 x B", "texts"):
        for k, turned in enumerate((spectra, spectra.T)):
            with h5py.File(tmp_path / "l.h5", "w") as f:
                f["spectra"], f["wavelength"] = turned, ROWS[kind]
            succeed(run("gdal_hsi_unmix", "-q", "-overwrite", image, tmp_path / "l.h5", tmp_path / "u.tif"))
            np.testing.assert_allclose(read(tmp_path / "u.tif")[:2], [cover, 1 - cover], atol=2e-3, err_msg=kind + str(k))


WRITTEN = {  # wavelengths as texts with units
    "each": [f"{w:g} nm" for w in NM], "together": [f"{w:g}nm" for w in NM], "micrometres": [f"{w / 1000:g} um" for w in NM],
    "names": [f"{w} Nanometers" for w in NM], "wavenumbers": [f"{1e7 / w!r} cm-1" for w in NM],
    "words": [f"{1e7 / w!r} inverse cm" for w in NM], "metres": [f"{w * 1e-9!r} m" for w in NM], "eV": [f"{1239.84198433200 / w!r} eV" for w in NM],
    "brackets": [f"{w:g} [nm]" for w in NM], "several units": ["450 nm", "0.55 um", "6.5e-7 m", "8500 angstrom"],
    "one text": "450 nm, 550 nm, 650 nm, 850 nm", "one unit": "450 550 650 850 nm", "in braces": "{450, 550, 650, 850} nm",
    "one unit of all": ["450 nm", "550", "650", "850"]}


@pytest.mark.parametrize("kind", WRITTEN)
@pytest.mark.parametrize("stated", [None, "nm", "um"])
def test_wavelengths_written_with_their_units(tmp_path, kind, stated):
    """In arrays and attributes, for any order of axes; a unit next to the numbers has priority over an attribute."""
    texts = WRITTEN[kind]
    places = ["attribute"] if isinstance(texts, str) else ["list", "attribute", "scale"]
    if len(places) > 1 and kind != "metres":  # these also have other lengths
        places.append("other name")
    for order in ("bls", "lsb"):
        for place in places:
            path = tmp_path / f"{order}{place}.h5"
            name = "position" if place == "other name" else "wavelength"
            with h5py.File(path, "w") as f:
                f["cube"] = VALUES.transpose(["bls".index(k) for k in order])
                if place == "attribute":
                    f["cube"].attrs[name] = texts
                else:
                    f[name] = np.array(texts, "S40")
                if stated:
                    (f["cube"] if place == "attribute" else f[name]).attrs[
                        "wavelength_units" if place == "attribute" else "units"] = stated
                if place in ("scale", "other name"):
                    f["bands"] = np.arange(BANDS)
                    f["bands"].make_scale("bands")
                    f["cube"].dims[order.index("b")].attach_scale(f["bands"] if place == "scale" else f[name])
                    if place == "other name":
                        f[name].make_scale(name)
            told = json.loads(succeed(run("gdal_hsi_info", "-json", path)).out)
            assert told["size"] == [SAMPLES, LINES, BANDS], (order, place)
            np.testing.assert_allclose(told["wavelengths_nm"], NM, rtol=1e-6, err_msg=order + place)


@pytest.mark.parametrize("texts", [["450 nm", "550 um", "650", "850"], ["450 nm", "", "650", "850"], ["450 apples"] * 4])
def test_units_that_are_not_clear(tmp_path, texts):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["cube"], f["wavelength"] = VALUES, texts
    said = succeed(run("gdal_hsi_info", "-json", tmp_path / "a.h5"))
    assert "wavelength is ignored" in said.err and not json.loads(said.out)["wavelengths_nm"], said.err


def test_wavelengths_that_are_no_numbers_are_told(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["cube"], f["wavelength"] = VALUES, ["blue", "green", "red", "NIR"]
    assert "/wavelength is ignored: 'blue' is not a number" in succeed(run("gdal_hsi_info", tmp_path / "a.h5")).err


@pytest.mark.parametrize("shape, bands, doubtful", [
    ((5, 4, 5), 0, True), ((4, 5, 5), 2, True), ((5, 5, 4), 0, True), ((5, 5, 5), 0, True), ((4, 5, 4), 1, False),
    ((4, 4, 5), 2, False), ((5, 4, 4), 0, False)])
def test_axes_as_long_as_the_bands(tmp_path, shape, bands, doubtful):
    """A warning appears if only the order of unnamed axes identifies the band axis; names are unambiguous."""
    values = np.arange(np.prod(shape), dtype="i2").reshape(shape) + 1
    for named in (False, True):
        with h5py.File(tmp_path / "a.h5", "w") as f:
            f["cube"], f["wavelength"] = values, 450 + 10. * np.arange(5)
            f["wavelength"].attrs["units"] = "nm"
            if named:
                f["wavelength"].make_scale("wavelength")
                f["cube"].dims[bands].attach_scale(f["wavelength"])
        got, dataset = seen(tmp_path / "a.h5", tmp_path)
        np.testing.assert_array_equal(got, np.moveaxis(values, bands, 0))
        said = succeed(run("gdal_hsi_info", tmp_path / "a.h5")).err
        assert ("several axes are as long as the list of wavelengths (5)" in said) == (doubtful and not named), said


def test_wavelengths_next_to_the_cube_come_first(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["a/wl"] = np.array(NM) + 1000
        f["b/cube"] = VALUES
        f["b/wl"] = NM
        f["b/wl"].attrs["units"] = "nm"
        f["c/wl"] = np.array(NM) + 500
    told = json.loads(succeed(run("gdal_hsi_info", "-json", tmp_path / "a.h5")).out)
    assert told["wavelengths_nm"] == NM


def test_lists_in_attributes(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["cube"] = VALUES
        f["cube"].attrs.update({"center_wavelengths": NM, "fwhm": [5.] * 4, "bad_band_list": [1, 0, 1, 1]})
    told = json.loads(succeed(run("gdal_hsi_info", "-json", "-bbl", "use", tmp_path / "a.h5")).out)
    assert told["bad_bands"] == [2] and told["wavelengths_nm"] == [450, 650, 850] and told["fwhm_nm"][0] == 5, told


@pytest.mark.parametrize("width", [5., "5 nm", "0.005 um", ["5 nm"] * 4])
@pytest.mark.parametrize("at", ["cube", "wavelength"])
def test_one_width_in_an_attribute_is_that_of_all_bands(tmp_path, at, width):
    with netcdf.Dataset(tmp_path / "a.nc", "w") as d:
        for name, size in (("wavelength", 4), ("y", VALUES.shape[1]), ("x", VALUES.shape[2])):
            d.createDimension(name, size)
        axis = d.createVariable("wavelength", "f4", ("wavelength",))
        axis.units, axis[:] = "nm", NM
        d.createVariable("cube", "f4", ("wavelength", "y", "x"))[:] = VALUES
        (d[at].setncattr_string if isinstance(width, list) else d[at].setncattr)("fwhm", width)
    assert json.loads(succeed(run("gdal_hsi_info", "-json", tmp_path / "a.nc")).out)["fwhm_nm"] == [5] * 4


@pytest.mark.parametrize("of", ["lines", "samples"])
@pytest.mark.parametrize("order", ["bls", "lsb"])
def test_one_line_or_sample_has_no_size_of_pixels(tmp_path, of, order):
    few = {"lines": dict(values=VALUES[:, :1], y=Y[:1]), "samples": dict(values=VALUES[:, :, :1], x=X[:1])}[of]
    axis, unit = {"lines": "y", "samples": "x"}[of], {"units": "m"}
    path = scene(order, **few, of_x=unit, of_y=unit).write(tmp_path, "NETCDF4")
    check(path, tmp_path, few["values"], None)
    assert f"the only coordinate of {axis} does not state the pixel size" in succeed(run("gdal_hsi_info", path)).err
    told = {**UTM, "GeoTransform": "500000 20 0 4000000 0 -20"}
    check(scene(order, **few, of_x=unit, of_y=unit, mapping=told).write(tmp_path, "NETCDF4"), tmp_path, few["values"])


POSITIONS = {
    "single precision": (dict(x=X.astype("f4"), y=Y.astype("f4")), GRID),
    "packed": (dict(x=np.arange(SAMPLES, dtype="i2"), y=np.arange(LINES, dtype="i2"),
                    of_x={"scale_factor": 20., "add_offset": 500010.},
                    of_y={"scale_factor": -20., "add_offset": 3999990.}), GRID),
    "kilometres": (dict(x=X / 1000, y=Y / 1000, of_x={"units": "km"}, of_y={"units": "km"}), GRID),
    "degrees": (dict(x=9 + .01 * np.arange(SAMPLES), y=48 - .01 * np.arange(LINES), names=("wavelength", "lat", "lon"),
                     mapping=None), (8.995, .01, 0, 48.005, 0, -.01)),
    "other names": (dict(names=("c", "j", "i"), of_x={"standard_name": "projection_x_coordinate"},
                         of_y={"standard_name": "projection_y_coordinate"}), GRID),
    "no coordinates": (dict(x=None, y=None), None),
    "numbers of pixels": (dict(x=np.arange(SAMPLES) * 1., y=np.arange(LINES) + 1.), None),
    "a grid without coordinates": (dict(x=None, y=None, mapping={**UTM, "GeoTransform": "500000 20 0 4000000 0 -20"}), GRID),
    "uneven": (dict(y=3999990 - 20. * np.arange(LINES)**2), None),
    "a stale grid": (dict(mapping={**UTM, "GeoTransform": "100 5 0 900 0 -5"}), GRID),
}


@pytest.mark.parametrize("format", FORMATS)
def test_positions(tmp_path, format):
    for k, (what, (arguments, grid)) in enumerate(POSITIONS.items()):
        for order in ("bls", "lsb"):
            folder = tmp_path / f"{k}{order}"
            folder.mkdir()
            path = scene(order, **arguments).write(folder, format)
            dataset = check(path, folder, grid=grid)
            assert (dataset.GetSpatialRef() is not None) == (grid is not None), what
            if what in ("uneven", "a stale grid"):
                said = run("gdal_hsi_info", path)
                assert ("not evenly spaced" if what == "uneven" else "GeoTransform") in said.out + said.err, said


@pytest.mark.parametrize("unit", ["degrees_east", "degree_east", "degree_E", "degrees_E", "degreeE", "degreesE"])
def test_spellings_of_degrees(tmp_path, unit):
    """CF's spellings; the units identify the axes and the reference system."""
    path = scene("sbl", x=9 + .01 * np.arange(SAMPLES), y=48 - .01 * np.arange(LINES), names=("wavelength", "b", "a"), mapping=None,
                 of_x={"units": unit}, of_y={"units": unit.replace("east", "north").replace("E", "N")}).write(tmp_path, "NETCDF4")
    assert check(path, tmp_path, grid=(8.995, .01, 0, 48.005, 0, -.01)).GetSpatialRef().GetAuthorityCode(None) == "4326"


I, J = np.arange(LINES), np.arange(SAMPLES)
IDENTITY = {"GeoTransform": "0.0 1.0 0.0 0.0 0.0 1.0"}
INDICES = {  # names of the axes, coordinates, attributes of the lines' coordinates, the grid mapping
    "centres": ("y x", I + .5, J + .5, {}, IDENTITY), "centres without a grid": ("y x", I + .5, J + .5, {}, None),
    "a part": ("y x", I + 10, J + 20, {}, None), "every second line": ("y x", I * 2, J, {}, None),
    "centres on a map": ("y x", I + .5, J + .5, {}, UTM), "a part of a swath": ("downtrack crosstrack", I + 100, J, {}, None),
    "a part on a map": ("along_track across_track", I + 100, J + 20, {}, UTM),
    "lines from 10": ("line sample", I + 10, J + 20, {}, None), "chosen rows": ("row col", I**2, J * 2, {}, None),
    "a unit": ("line sample", I, J, {"units": "pixel"}, None), "a flight": ("scan pixel", I + 300000, J, {}, None),
    "times": ("scan pixel", 1e9 + I * .1, J, {"units": "seconds since 1970-01-01", "standard_name": "time"}, None),
    "times of a clock": ("scan pixel", 1e9 + I * .25, J, {"units": "s"}, None),
    "turned": ("row col", I[::-1], J[::-1], {}, None)}


@pytest.mark.parametrize("format", FORMATS)
def test_indices_are_no_positions(tmp_path, format):
    """Coordinates that count lines and samples keep the order of the file, and give no position."""
    for k, (names, y, x, of_y, mapping) in enumerate(INDICES.values()):
        for order in ("bls", "lsb"):
            folder = tmp_path / f"{k}{order}"
            folder.mkdir()
            path = scene(order, y=y * 1., x=x * 1., names=("wavelength", *names.split()), of_y=of_y, mapping=mapping).write(
                folder, format)
            assert "GeoTransform" not in check(path, folder, grid=None).said


def test_labels_along_indices(tmp_path):
    truth = np.arange(LINES * SAMPLES, dtype="i2").reshape(LINES, SAMPLES) // 5 % 3 + 1
    image = write_scene(tmp_path / "s.dat", np.broadcast_to(truth * 10., (2, LINES, SAMPLES)), "ENVI", "f4",
                        geotransform=None, epsg=None)
    for k, (names, y, x, of_y, _) in enumerate(INDICES.values()):
        folder = tmp_path / str(k)
        folder.mkdir()
        lines, samples = names.split()
        path = File([(lines, y, of_y), (samples, x, {})], {"labels": ((lines, samples), truth, {})}).write(folder, "NETCDF4")
        succeed(run("gdal_hsi_spectra", "-q", image, path, folder / "m.csv"))
        np.testing.assert_allclose(np.genfromtxt(folder / "m.csv", delimiter=",", skip_header=1)[0, -3:], [10, 20, 30])


def test_part_of_a_swath(tmp_path):
    """As xarray saves a part of EMIT: indices in the whole scene, and the longitude and latitude of every pixel."""
    places = {"lon": 9 + .1 * J[None] + 0. * I[:, None], "lat": 50 - .1 * I[:, None] + 0. * J[None]}
    axes = ("downtrack", "crosstrack")
    path = scene("lsb", y=I + 100, x=J + 20, names=("wavelength", *axes), name="reflectance", mapping=None,
                 attributes={"coordinates": "lon lat"},
                 arrays={name: (axes, values, {}) for name, values in places.items()}).write(tmp_path, "NETCDF4")
    domain = check(path, tmp_path, grid=None).GetMetadata("GEOLOCATION")
    assert domain["X_DATASET"].endswith("lon") and domain["Y_DATASET"].endswith("lat"), domain


def test_indices_and_the_grid_of_the_whole(tmp_path):
    """The position of a part differs from that of the whole."""
    told = {**UTM, "GeoTransform": "500000 20 0 4000000 0 -20"}
    for first, grid in ((0, GRID), (10, None)):
        path = scene("lsb", y=I + first, x=J + first, names=("wavelength", "row", "col"), mapping=told).write(
            tmp_path, "NETCDF4")
        said = check(path, tmp_path, grid=grid).said
        assert ("are indices into a part of the grid" in run("gdal_hsi_info", path).err) == (first > 0), said


TOLD = {"GeoTransform": "500000 20 0 4000000 0 -20"}
CODES = [{"proj4": "+proj=utm +zone=32 +datum=WGS84"}, {"epsg_code": "EPSG:32632"}, {"epsg_code": np.int32(32632)},
         {"spatial_epsg": "32632"}, {"epsg": 32632.}]


@pytest.mark.parametrize("place", ["mapping", "array", "file"])
@pytest.mark.parametrize("k", range(len(CODES)))
def test_grids_and_codes_in_any_place(tmp_path, place, k):
    """GeoTransform, PROJ's parameters and EPSG codes apply as attributes of the grid mapping, the array and the
    file."""
    facts = {**TOLD, **CODES[k]}
    one = scene("lsb", x=None, y=None, mapping=facts if place == "mapping" else None,
                attributes=facts if place == "array" else {})
    one.attributes = facts if place == "file" else {}
    srs = check(one.write(tmp_path, "NETCDF4" if k % 2 else "HDF5 with scales"), tmp_path).GetSpatialRef()
    assert "32N" in srs.GetName() or srs.GetUTMZone() == 32, srs


@pytest.mark.parametrize("name, value", [
    ("epsg_code", 99999), ("epsg_code", "EPSG:99999"), ("spatial_epsg", "99999"), ("crs_wkt", "PROJCS[damaged"),
    ("spatial_ref", "EPSG:99999"), ("proj4", "+proj=nothing"), ("grid_mapping_name", "of_no_convention"), ("epsg", "/etc/hostname")])
@pytest.mark.parametrize("place", ["mapping", "array", "file"])
def test_reference_systems_that_do_not_exist(tmp_path, name, value, place):
    """A warning names the attribute; a valid attribute next to it applies."""
    if name == "grid_mapping_name" and place != "mapping":
        return
    for valid in (False, True):
        facts = {name: value, **({"epsg": 32632} if valid and name != "epsg" else {})}
        one = scene("lsb", mapping={"x": 1, **facts} if place == "mapping" else None, attributes=facts if place == "array" else {})
        one.attributes = facts if place == "file" else {}
        path = one.write(tmp_path, "NETCDF4")
        dataset = check(path, tmp_path)
        assert (dataset.GetSpatialRef() is not None) == ("epsg" in facts and name != "epsg")
        said = run("gdal_hsi_info", path).err
        assert f"the attribute {name} = '{value}' is ignored: it is not a known reference system" in said, said


def test_lists_of_another_length_are_told(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["cube"], f["wavelength"] = VALUES, np.array(NM + [900.])
        f["cube"].attrs["scale_factor"] = [1., 2.]
    said = succeed(run("gdal_hsi_info", tmp_path / "a.h5")).err
    assert "the list of wavelengths is ignored: it has 5 numbers, but the scene has 4 bands" in said, said
    assert "scale_factor is ignored: it has 2 numbers, not 1 or 4" in said, said


@pytest.mark.parametrize("order", ["bls", "lsb"])
def test_scales_of_bands(tmp_path, order):
    scales, offsets = [.1, .2, .3, .4], [1., 2., 3., 4.]
    path = scene(order, attributes={"scale_factor": np.array(scales), "add_offset": np.array(offsets)}).write(tmp_path, "NETCDF4")
    told = json.loads(succeed(run("gdal_hsi_info", "-json", path)).out)
    assert told["scale"] == scales and told["offset"] == offsets, told


@pytest.mark.parametrize("before", [512, 1024, 4096])
def test_hdf5_behind_other_bytes(tmp_path, before):
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=before) as f:
        f.create_dataset("cube", data=VALUES.transpose(1, 2, 0), chunks=(2, 3, 2), compression="gzip")
        f["wavelength"] = NM
        f["none"] = np.zeros((LINES, SAMPLES, BANDS), "c8")  # complex arrays are not scenes
    assert json.loads(succeed(run("gdal_hsi_info", "-json", tmp_path / "a.h5")).out)["wavelengths_nm"] == NM
    check(tmp_path / "a.h5", tmp_path, grid=None)


def test_the_grid_of_a_file_is_not_that_of_its_swath(tmp_path):
    axes = ("y", "x")
    one = scene("lsb", x=None, y=None, mapping=None, attributes={"coordinates": "lon lat"},
                arrays={n: (axes, 9 + np.zeros((LINES, SAMPLES)), {}) for n in ("lon", "lat")})
    one.attributes = TOLD
    assert check(one.write(tmp_path, "NETCDF4"), tmp_path, grid=None).GetMetadata("GEOLOCATION")


@pytest.mark.parametrize("format", FORMATS + ["HDF5"])
def test_labels_and_masks(tmp_path, format):
    """Lines may rise and samples fall; 255 means unlabelled."""
    truth = (np.arange(LINES * SAMPLES, dtype="u1").reshape(LINES, SAMPLES) // 5 % 3) + 1
    image = write_scene(tmp_path / "scene.dat", np.broadcast_to(truth * 10., (2, LINES, SAMPLES)), "ENVI", "f4",
                        geotransform=None, epsg=None)
    for k, kind in enumerate(["u1", "i2", "i4"]):
        for axes in (("y", "x"), ("x", "y"), ("time", "y", "x")):
            for y_turn in (1, -1):
                if format == "NETCDF3_CLASSIC" and kind == "u1":
                    continue  # it lacks this type
                folder = tmp_path / f"{k}{len(axes)}{axes[0]}{y_turn}"
                folder.mkdir()
                fill = 255 if kind == "u1" else -1
                labels = truth.astype(kind)
                labels[0, 0] = fill
                stored = labels[::y_turn]
                stored = stored.T if axes == ("x", "y") else stored[None] if len(axes) == 3 else stored
                kinds = {"u1": np.uint8, "i2": np.int16, "i4": np.int32}
                one = File([("y", Y[::y_turn], {}), ("x", X, {})],
                           {"labels": (axes, np.ascontiguousarray(stored), {"_FillValue": kinds[kind](fill)})})
                if format == "HDF5" and (axes == ("x", "y") or y_turn == -1):
                    continue  # nothing states this
                path = one.write(folder, format)
                succeed(run("gdal_hsi_spectra", "-q", "-overwrite", image, path, folder / "means.csv"))
                rows = np.genfromtxt(folder / "means.csv", delimiter=",", skip_header=1)
                np.testing.assert_allclose(rows[0, -3:], [10, 20, 30], err_msg=str((kind, axes, y_turn)))
                assert open(folder / "means.csv").readline().strip().endswith("Class 1,Class 2,Class 3")


@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 3)])
@pytest.mark.parametrize("listed", [None, LINES])
def test_planes_with_an_axis_of_one(tmp_path, axis, listed):
    """Labels and masks with unnamed axes, as Keras and scikit-image write them: (line, sample, 1) is a plane, even with
    wavelengths whose number equals the number of lines."""
    truth = np.arange(LINES * SAMPLES, dtype="u1").reshape(LINES, SAMPLES) // 5 % 4
    image = write_scene(tmp_path / "s.dat", np.broadcast_to(truth * 10. + 1, (2, LINES, SAMPLES)), "ENVI", "f4",
                        geotransform=None, epsg=None)
    with h5py.File(tmp_path / "l.h5", "w") as f:
        f["labels"] = truth if axis is None else np.expand_dims(truth, axis)
        if listed:
            f["wavelength"] = 450. + np.arange(listed)
    succeed(run("gdal_hsi_spectra", "-q", image, tmp_path / "l.h5", tmp_path / "m.csv"))
    np.testing.assert_allclose(np.genfromtxt(tmp_path / "m.csv", delimiter=",", skip_header=1)[0, -3:], [11, 21, 31])
    succeed(run("gdal_hsi_pca", "-q", "-nc", "1", "-mask", tmp_path / "l.h5", "-mask-output", image,
                tmp_path / "o.tif"))
    dataset = gdal.Open(str(tmp_path / "o.tif"))
    np.testing.assert_array_equal(dataset.GetRasterBand(1).GetMaskBand().ReadAsArray() != 0, truth > 0)


def test_scene_of_one_band_last(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["cube"] = VALUES[0, :, :, None]
    check(tmp_path / "a.h5", tmp_path, VALUES[:1], None)


@pytest.mark.parametrize("format", FORMATS)
def test_scales_of_labels_are_ignored(tmp_path, format):
    truth = np.arange(LINES * SAMPLES, dtype="i2").reshape(LINES, SAMPLES) // 5 % 3 + 1
    image = write_scene(tmp_path / "s.dat", np.broadcast_to(truth * 10., (2, LINES, SAMPLES)), "ENVI", "f4", geotransform=None, epsg=None)
    for scale in (1., .5):
        path = File([("y", Y, {}), ("x", X, {})], {"labels": (("y", "x"), truth, {"scale_factor": scale})}).write(tmp_path, format)
        said = succeed(run("gdal_hsi_spectra", "-overwrite", image, path, tmp_path / "m.csv"))
        assert ("are ignored: labels are read as stored" in said.err) == (scale != 1), said.err
        np.testing.assert_allclose(np.genfromtxt(tmp_path / "m.csv", delimiter=",", skip_header=1)[0, -3:], [10, 20, 30])
        if format == "Zarr":
            shutil.rmtree(path)


@pytest.mark.parametrize("none, kind, attributes", [
    (np.nan, "f4", {"_FillValue": np.float32("nan")}), (-1, "i2", {"valid_range": np.array([1, 3], "i2")}),
    (99, "i2", {"missing_value": I2(99), "_FillValue": I2(-5)}), (77, "i4", {"valid_max": np.int32(3)})])
def test_pixels_without_a_label(tmp_path, none, kind, attributes):
    truth = np.arange(LINES * SAMPLES).reshape(LINES, SAMPLES) // 5 % 3 + 1.
    image = write_scene(tmp_path / "s.dat", np.broadcast_to(truth, (2, LINES, SAMPLES)), "ENVI", "f4", geotransform=None,
                        epsg=None)
    truth[0, 0] = none
    for format in FORMATS:
        folder = tmp_path / format
        folder.mkdir()
        path = File([("y", Y, {}), ("x", X, {})], {"labels": (("y", "x"), truth.astype(kind), attributes)}).write(
            folder, format)
        succeed(run("gdal_hsi_spectra", "-q", image, path, folder / "m.csv"))
        assert open(folder / "m.csv").readline().strip().split(",")[-3:] == ["Class 1", "Class 2", "Class 3"]
        assert "Class 77" not in open(folder / "m.csv").readline()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("meanings, values, names", [
    ("oak  dry_grass soil", [1, 2, 3], ["oak", "dry_grass", "soil"]),
    ("soil unlabelled oak", [3, 0, 1], ["oak", "Class 2", "soil"]),
    ("oak soil", [1, 2, 3], None)])
def test_names_of_classes(tmp_path, format, meanings, values, names):
    """CF's flag_values and flag_meanings; a warning lists names that do not match the values."""
    truth = np.arange(LINES * SAMPLES, dtype="i2").reshape(LINES, SAMPLES) // 5 % 3 + 1
    image = write_scene(tmp_path / "s.dat", np.broadcast_to(truth, (2, LINES, SAMPLES)), "ENVI", "f4", geotransform=None,
                        epsg=None)
    path = File([("y", Y[::-1], {}), ("x", X, {})], {"labels": (("y", "x"), np.ascontiguousarray(truth[::-1]), {
        "flag_values": np.array(values, "i2"), "flag_meanings": meanings})}).write(tmp_path, format)
    said = succeed(run("gdal_hsi_spectra", "-q", image, path, tmp_path / "m.csv"))
    with open(tmp_path / "m.csv") as f:
        assert f.readline().strip().split(",")[-3:] == (names or ["Class 1", "Class 2", "Class 3"])
    assert ("flag_meanings is ignored: it has 2 names for 3 values" in said.err) == (names is None), said.err


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["o.tif", "o.dat", "o.img"])
def test_names_of_classes_are_copied(tmp_path, format, name):
    truth = np.arange(LINES * SAMPLES, dtype="i2").reshape(LINES, SAMPLES) // 5 % 3 + 1
    path = File([("y", Y, {}), ("x", X, {})], {"labels": (("y", "x"), truth, {
        "flag_values": np.array([1, 2, 3], "i2"), "flag_meanings": "oak dry_grass soil"})}).write(tmp_path, format)
    of = {"o.tif": "", "o.dat": "-of ENVI", "o.img": "-of HFA"}[name]
    succeed(run("gdal_hsi_pipeline", "-q", f"read '{path}' ! write '{tmp_path}/{name}' {of}"))
    dataset = gdal.Open(str(tmp_path / name))
    dataset.GetRasterBand(1).GetMetadata()  # GDAL 3.6 reads a GeoTIFF's side file only after this
    assert dataset.GetRasterBand(1).GetCategoryNames()[:4] == ["", "oak", "dry_grass", "soil"]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("order", ["bls", "lsb", "sbl"])
def test_probability_maps(tmp_path, format, order):
    """An array with any axes and directions gives the smoothed probabilities of a GeoTIFF."""
    random = np.random.default_rng(3).random((BANDS, LINES, SAMPLES)).astype("f4")
    soft = random / random.sum(axis=0)
    soft[:, 2, 1] = np.nan
    tiff = write_scene(tmp_path / "p.tif", soft, "GTiff", "f4", geotransform=GRID, epsg=32632)
    stored = np.where(np.isfinite(soft), soft, np.float32(-1))[:, ::-1, ::-1]
    path = scene(order, stored, {"_FillValue": np.float32(-1)}, x=X[::-1], y=Y[::-1], names=("class", "y", "x"),
                 nm=("i4", None, None), name="probabilities").write(tmp_path, format)
    for source, out in ((tiff, "a.tif"), (path, "b.tif")):
        succeed(run("gdal_hsi_regularize", "-q", "-map", tmp_path / ("map_" + out), source, tmp_path / out))
    for out in ("{}.tif", "map_{}.tif"):
        a, b = (gdal.Open(str(tmp_path / out.format(k))) for k in "ab")
        masks = [d.GetRasterBand(1).GetMaskBand().ReadAsArray() != 0 for d in (a, b)]
        np.testing.assert_array_equal(*masks)
        np.testing.assert_array_equal(*(d.ReadAsArray()[..., masks[0]] for d in (a, b)))
        np.testing.assert_allclose(a.GetGeoTransform(), b.GetGeoTransform())
        assert out == "map_{}.tif" or np.sum(~masks[0]) == 1


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("axes", [("spectrum", "wavelength"), ("wavelength", "spectrum"), ("n", "m")])
def test_libraries(tmp_path, format, axes):
    """Fractional cover of a scene that is a mixture of the library's spectra."""
    spectra = np.array([[.1, .5, .2, .7], [.6, .1, .3, .2]])
    cover = np.linspace(0, 1, LINES * SAMPLES).reshape(LINES, SAMPLES)
    mixed = np.einsum("kls,kb->bls", np.stack([cover, 1 - cover]), spectra)
    image = write_scene(tmp_path / "s.tif", mixed, "GTiff", "f4")
    turned = np.ascontiguousarray(spectra if axes[0] in ("spectrum", "n") else spectra.T)
    packed = np.round(turned * 1e4).astype("i2")
    path = File([("wavelength", np.array(NM), {"units": "nm"})],
                {"spectra": (axes, packed, {"scale_factor": 1e-4, "_FillValue": I2(-9999)})}).write(tmp_path, format)
    succeed(run("gdal_hsi_unmix", "-q", image, path, tmp_path / "u.tif"))
    np.testing.assert_allclose(read(tmp_path / "u.tif")[:2], [cover, 1 - cover], atol=2e-3)


SPECTRA = np.array([[.1, .5, .2, .7], [.6, .1, .3, .2]])


def mixture(path, spectra=SPECTRA):
    """Returns a scene that is a mixture of spectra, with the wavelengths NM, and the cover of the first of two."""
    cover = np.linspace(0, 1, LINES * SAMPLES).reshape(LINES, SAMPLES)
    write_scene(path, np.einsum("kls,kb->bls", np.stack([cover, 1 - cover]), spectra), "ENVI", "f4")
    header = path.with_suffix(".hdr")
    header.write_text(header.read_text() + f"wavelength units = Nanometers\nwavelength = {{{', '.join(map(str, NM))}}}\n")
    return path, cover


def unmixed(image, library, folder):
    """Returns covers, the names of the spectra and the messages."""
    out = folder / "u.tif"
    said = succeed(run("gdal_hsi_unmix", "-overwrite", "-method", "ucls", image, library, out))
    dataset = gdal.Open(str(out))
    return dataset.ReadAsArray(), [dataset.GetRasterBand(b + 1).GetDescription() for b in range(dataset.RasterCount)], said


@pytest.mark.parametrize("format", FORMATS)
def test_libraries_in_lists(tmp_path, format):
    """Arrays along only the wavelengths are spectra with their names; widths, bad bands and statistics are not."""
    image, cover = mixture(tmp_path / "s.dat")
    about = {"fwhm": (("wavelength",), np.full(BANDS, 5.), {"units": "nm"}), "good_wavelengths": (("wavelength",), np.ones(BANDS, "i4"), {}),
             "grass_std": (("wavelength",), np.ones(BANDS), {})}
    grass, soil = ((("wavelength",), np.round(s * 1e4).astype("i2"), {"scale_factor": 1e-4}) for s in SPECTRA)
    axis = ("wavelength", np.array(NM), {"units": "nm"})
    folder = tmp_path / "two"
    folder.mkdir()
    path = File([axis], {"grass": grass, "soil": soil, **about}).write(folder, format)
    got, names, _ = unmixed(image, path, folder)
    assert names[:2] == ["grass", "soil"], names
    np.testing.assert_allclose(got[:2], [cover, 1 - cover], atol=2e-3)
    folder = tmp_path / "one"
    folder.mkdir()
    del about["grass_std"]
    path = File([axis], {"grass": grass, **about}).write(folder, format)
    got, names, _ = unmixed(mixture(folder / "s.dat", np.stack([SPECTRA[0]] * 2))[0], path, folder)
    assert names[0] == "grass"
    np.testing.assert_allclose(got if got.ndim == 2 else got[0], 1, atol=2e-3)
    told = json.loads(succeed(run("gdal_hsi_info", "-json", path)).out)
    assert told["wavelengths_nm"] == NM and told["size"] == [1, 1, BANDS], told
    np.testing.assert_allclose(seen(path, folder)[0][:, 0, 0], np.round(SPECTRA[0] * 1e4))


def test_libraries_in_groups(tmp_path):
    """Lists with equal names are named after their groups; lists with other wavelengths are refused."""
    image, cover = mixture(tmp_path / "s.dat")
    for shift in (0, 1):
        with h5py.File(tmp_path / "l.h5", "w") as f:
            for k, name in enumerate(("grass", "soil")):
                f[f"{name}/wavelength"] = np.array(NM) + k * shift
                f[f"{name}/wavelength"].attrs["units"] = "nm"
                f[f"{name}/reflectance"] = SPECTRA[k]
        if shift:
            result = run("gdal_hsi_unmix", image, tmp_path / "l.h5", tmp_path / "x.tif")
            assert result.code == 1 and "the wavelengths of grass/reflectance and soil/reflectance differ" in first_error(result), result.err
        else:
            got, names, _ = unmixed(image, tmp_path / "l.h5", tmp_path)
            assert names[:2] == ["grass/reflectance", "soil/reflectance"]
            np.testing.assert_allclose(got[:2], [cover, 1 - cover], atol=2e-3)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("listed", ["array", "row", "attribute", "texts"])
def test_libraries_with_other_bands_than_the_scene(tmp_path, turned, listed):
    """A list of wavelengths identifies the band axis, so spectra are resampled."""
    image, cover = mixture(tmp_path / "s.dat")
    at = np.arange(400., 901., 10)
    fine = np.array([np.interp(at, NM, s) for s in SPECTRA])
    with h5py.File(tmp_path / "l.h5", "w") as f:
        f["spectra"] = fine.T if turned else fine
        if listed == "attribute":
            f["spectra"].attrs.update({"wavelength": at, "wavelength_units": "nm"})
        else:
            f["wavelength"] = {"array": at, "row": at[None], "texts": [f"{w:g} nm" for w in at]}[listed]
    got, _, _ = unmixed(image, tmp_path / "l.h5", tmp_path)
    np.testing.assert_allclose(got[:2], [cover, 1 - cover], atol=2e-2)


@pytest.mark.parametrize("unit", ["%", "percent"])
def test_a_library_in_percent_becomes_shares(tmp_path, unit):
    with h5py.File(tmp_path / "l.h5", "w") as f:
        f["spectra"], f["wavelength"] = 100 * np.array(SPECTRA), NM
        f["spectra"].attrs["units"], f["wavelength"].attrs["units"] = unit, "nm"
    image, cover = mixture(tmp_path / "s.dat")
    got, _, _ = unmixed(image, tmp_path / "l.h5", tmp_path)
    np.testing.assert_allclose(got[:2], [cover, 1 - cover], atol=2e-3)


def test_library_next_to_a_scene(tmp_path):
    """The table of spectra is the library, with a warning; without a table, the file is refused. As a scene, the file
    gives the cube."""
    image, cover = mixture(tmp_path / "s.dat")
    for table in (True, False):
        arrays = {"spectra": (("member", "wavelength"), SPECTRA, {})} if table else {"mask": (("y", "x"), np.ones((LINES, SAMPLES), "u1"), {})}
        path = scene("lsb", arrays=arrays).write(tmp_path, "NETCDF4")
        check(path, tmp_path)
        if table:
            got, _, said = unmixed(image, path, tmp_path)
            np.testing.assert_allclose(got[:2], [cover, 1 - cover], atol=2e-3)
            assert "it is read as the library, although the file also has the scene /cube" in said.err
        else:
            result = run("gdal_hsi_unmix", image, path, tmp_path / "x.tif")
            assert result.code == 1 and "/cube is a scene, but a library has two axes" in first_error(result), result.err


def test_zarr_that_gdal_does_not_open(tmp_path):
    folder = tmp_path / "a.zarr"
    folder.mkdir()
    (folder / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')
    result = run("gdal_hsi_info", folder)
    assert result.code == 1
    assert "version 3" in first_error(result) or int(gdal.VersionInfo()) >= 3080000, result.err


def test_neon_radiance_in_two_arrays(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for part, kind in (("Integer", "i2"), ("Decimal", "u2")):
            f[f"ABCD/Radiance/Radiance{part}Part"] = np.ones((LINES, SAMPLES, BANDS), kind)
        f["ABCD/Radiance/Metadata/Spectral_Data/Wavelength"] = NM
    result = run("gdal_hsi_info", tmp_path / "a.h5")
    assert result.code == 1 and "RadianceIntegerPart + RadianceDecimalPart" in first_error(result), result.err


@pytest.mark.parametrize("chunks", [None, (1, 3, 4)])
def test_signed_bytes_of_hdf5(tmp_path, chunks):
    values = VALUES.astype("i4") % 181 - 90
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("cube", data=values.astype("i1"), chunks=chunks)
    check(tmp_path / "a.h5", tmp_path, values, None)
    check(f'HDF5:"{tmp_path}/a.h5"://cube', tmp_path, values, None)


def test_vrt_of_arrays_is_refused_with_the_other_way(tmp_path):
    path = scene().write(tmp_path, "NETCDF4")
    result = run("gdal_hsi_pca", "-q", "-nc", "2", "-of", "VRT", path, tmp_path / "p.vrt")
    assert result.code == 2 and "which a VRT cannot use" in first_error(result) and ".hsi" in result.err, result.err
    succeed(run("gdal_hsi_pca", "-q", "-nc", "2", path, tmp_path / "p.hsi"))


@pytest.mark.parametrize("options", [[], ["FORMAT=NC4"], ["FORMAT=NC2"]])
@pytest.mark.parametrize("bands", [1, BANDS])
@pytest.mark.parametrize("place", [None, GRID])
def test_netcdf_outputs_without_an_srs(tmp_path, options, bands, place):
    """The output has no latitudes and longitudes; positions, pixels and direction are kept, and no temporary name
    remains."""
    image = write_scene(tmp_path / "s.tif", VALUES[:bands].astype("f4"), "GTiff", "f4", geotransform=place, epsg=None)
    out = tmp_path / "o.nc"
    co = " ".join(f"-co {option}" for option in options)
    succeed(run("gdal_hsi_pipeline", "-q", f"read '{image}' ! write '{out}' {co}"))
    with netcdf.Dataset(out) as d:
        assert "hsi-" not in d.history and str(out) in d.history and "latitude" not in str(d.variables), d
        assert {"x", "y"} <= set(d.dimensions) and "lat" not in d.dimensions
        if place or bands > 1:
            grid = place or (0, 1, 0, 0, 0, -1)
            np.testing.assert_allclose(d["x"][:], grid[0] + grid[1] * (np.arange(SAMPLES) + .5))
            np.testing.assert_allclose(d["y"][::-1], grid[3] + grid[5] * (np.arange(LINES) + .5))
    assert gdal.Open(str(out)).GetSpatialRef() is None
    got, dataset = seen(out, tmp_path)
    np.testing.assert_array_equal(got, VALUES[:bands])
    if place:
        np.testing.assert_allclose(dataset.GetGeoTransform(), place)


@pytest.mark.parametrize("epsg, names", [(32632, {"x", "y"}), (4326, {"lon", "lat"})])
def test_netcdf_outputs_with_an_srs(tmp_path, epsg, names):
    grid = GRID if epsg == 32632 else (8, .01, 0, 48, 0, -.01)
    image = write_scene(tmp_path / "s.tif", VALUES.astype("f4"), "GTiff", "f4", geotransform=grid, epsg=epsg)
    succeed(run("gdal_hsi_pipeline", "-q", f"read '{image}' ! write '{tmp_path}/o.nc'"))
    with netcdf.Dataset(tmp_path / "o.nc") as d:
        assert names <= set(d.dimensions) and "hsi-" not in d.history
    check(tmp_path / "o.nc", tmp_path, grid=grid)
