# SPDX-License-Identifier: MIT
"""Writes small files in the layouts of agencies' scenes, one function per product. Each function takes the folder, the
values (bands, lines, samples) and the intended faults, and returns the path. Names of groups, arrays, attributes and
elements come from the products' specifications, which each function names; the numbers are invented."""

import numpy as np

WGS84 = ('GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],'
         'UNIT["degree",0.0174532925199433]]')


def wavelengths_of(bands, first=381.0056, last=2493.6):
    return np.linspace(first, last, bands).astype("f4")


def places(lines, samples):
    """Returns longitudes and latitudes of a swath that is rotated and not evenly spaced."""
    y, x = np.mgrid[0:lines, 0:samples]
    return -118 + 0.0006 * x + 0.0002 * y + 1e-6 * x * x, 34 - 0.0005 * y + 0.0001 * x


def emit(folder, values, kind="reflectance", drop=(), wavelengths=None, glt=None, chunks=None):
    """EMIT L1B and L2A: NASA JPL, EMIT L1B (D-107862) and L2A (D-107866) user guides: cube (downtrack, crosstrack,
    bands), groups sensor_band_parameters and location, fill value -9999."""
    import netCDF4
    bands, lines, samples = values.shape
    path = folder / "scene.bin"
    wavelengths = wavelengths_of(bands) if wavelengths is None else wavelengths
    with netCDF4.Dataset(path, "w") as d:
        for name, size in (("downtrack", lines), ("crosstrack", samples), ("bands", bands), ("ortho_y", lines + 4),
                           ("ortho_x", samples + 6), ("listed", len(wavelengths))):
            d.createDimension(name, size)
        d.time_coverage_start, d.time_coverage_end = "2022-08-28T05:19:16+0000", "2022-08-28T05:19:28+0000"
        d.geotransform = np.array([-118.01, 0.0006, 0, 34.01, 0, -0.0006])
        d.spatial_ref = WGS84
        cube = d.createVariable(kind, "f4", ("downtrack", "crosstrack", "bands"), fill_value=-9999., zlib=True,
                                chunksizes=chunks)
        cube.units = "unitless" if kind == "reflectance" else "uW/cm^2/SR/nm"
        cube[:] = np.moveaxis(values, 0, 2)
        if "sensor_band_parameters" not in drop:
            group = d.createGroup("sensor_band_parameters")
            if "wavelengths" not in drop:
                group.createVariable("wavelengths", "f4", ("listed",))[:] = wavelengths
            group.createVariable("fwhm", "f4", ("bands",))[:] = np.linspace(8.4, 8.9, bands)
            good = np.ones(bands, "u1")
            good[bands // 2] = 0
            group.createVariable("good_wavelengths", "u1", ("bands",))[:] = good
        group = d.createGroup("location")
        lon, lat = places(lines, samples)
        for name, content in (("lon", lon), ("lat", lat), ("elev", lat)):
            group.createVariable(name, "f8", ("downtrack", "crosstrack"))[:] = content
        tables = glt or (np.zeros((lines + 4, samples + 6), "i4"),) * 2
        if "glt" in drop:
            return path
        for name, content in zip(("glt_x", "glt_y"), tables):
            group.createVariable(name, "i4", ("ortho_y", "ortho_x"), fill_value=0)[:] = content
    return path


def prisma(folder, values, level="L2D", first_swir=None, swir_lines=None, drop=()):
    """PRISMA: ASI, PRISMA Products Specification Document, issue 2.3: VNIR_Cube and SWIR_Cube (line, band, sample) as
    unsigned 16 bits. Band lists go from long to short wavelengths, and are 0 for missing bands."""
    import h5py
    bands, lines, samples = values.shape
    vnir = first_swir or bands // 3
    path = folder / "scene.bin"
    swath = f"/HDFEOS/SWATHS/PRS_{level}_HCO/"
    with h5py.File(path, "w") as h:
        for name, part in (("Vnir", values[:vnir]), ("Swir", values[vnir:])):
            # The ranges overlap: 400 to 1010 and 920 to 2500 nm. The last band of each list is missing.
            listed = np.linspace(400, 1010, len(part)) if name == "Vnir" else np.linspace(920, 2500, len(part))
            listed = listed[::-1].astype("f4")
            listed[-1] = 0
            if f"List_Cw_{name}" not in drop:
                h.attrs["List_Cw_" + name] = listed
            h.attrs["List_Fwhm_" + name] = np.where(listed > 0, 10.5, 0).astype("f4")
            h.attrs[f"List_Cw_{name}_Flags"] = (listed > 0).astype("i4")
            h.attrs[f"L2Scale{name}Min"] = np.float32(0.01)
            h.attrs[f"L2Scale{name}Max"] = np.float32(0.9)
            h.attrs["ScaleFactor_" + name] = np.float32(100)
            h.attrs["Offset_" + name] = np.float32(0.5)
            if upper_cube(name) not in drop:
                h.create_dataset(swath + "Data Fields/" + upper_cube(name), data=np.moveaxis(part, 0, 1).astype("u2"),
                                 chunks=(min(8, lines), len(part), samples), compression="gzip")
        h.attrs["Product_StartTime"] = np.bytes_("2020-07-01T10:12:33.125")
        h.attrs["Product_StopTime"] = np.bytes_("2020-07-01T10:12:37.5")
        if level == "L2D":
            h.attrs["Epsg_Code"] = 32632
            h.attrs["Product_ULcorner_easting"], h.attrs["Product_ULcorner_northing"] = 500015., 4649985.
            h.attrs["Product_LRcorner_easting"] = 500015. + 30 * (samples - 1)
            h.attrs["Product_LRcorner_northing"] = 4649985. - 30 * (lines - 1)
        lon, lat = places(lines, samples)
        suffix = "_SWIR" if level == "L1" else ""
        h[swath + "Geolocation Fields/Longitude" + suffix] = lon.astype("f4")
        h[swath + "Geolocation Fields/Latitude" + suffix] = lat.astype("f4")
    return path


def upper_cube(name):
    return name.upper() + "_Cube"


def neon(folder, values, drop=()):
    """NEON AOP: NEON.DP3.30006 surface directional reflectance, ATBD NEON.DOC.001288: SITE/Reflectance."""
    import h5py
    bands, lines, samples = values.shape
    path = folder / "scene.bin"
    with h5py.File(path, "w") as h:
        base = "/SERC/Reflectance/"
        cube = h.create_dataset(base + "Reflectance_Data", data=np.moveaxis(values, 0, 2).astype("i2"),
                                chunks=(min(16, lines), min(16, samples), min(10, bands)), compression="gzip")
        cube.attrs["Data_Ignore_Value"], cube.attrs["Scale_Factor"] = -9999., 10000.
        h[base].attrs["Band_Window_1_Nanometers"] = np.array([1340, 1445])
        h[base].attrs["Band_Window_2_Nanometers"] = np.array([1790, 1955])
        if "Wavelength" not in drop:
            h[base + "Metadata/Spectral_Data/Wavelength"] = wavelengths_of(bands)
        h[base + "Metadata/Spectral_Data/FWHM"] = np.full(bands, 5.8, "f4")
        place = base + "Metadata/Coordinate_System/"
        h[place + "Map_Info"] = np.bytes_("UTM,  1.000,  1.000,       367000.00,       4310000.0,       1.0,       1.0,  "
                                          "18,  North,  WGS-84,  units=Meters, 0")
        h[place + "EPSG Code"] = np.bytes_("32618")
    return path


def aviris(folder, values, ortho=True, drop=(), sensor="AVIRIS-3"):
    """AVIRIS-3 and AVIRIS-NG: ORNL DAAC, AVIRIS-3 L2A orthocorrected surface reflectance, user guide: group
    reflectance with the cube (wavelength, northing, easting); L1B radiance in lines and samples with lat and lon."""
    import netCDF4
    bands, lines, samples = values.shape
    path = folder / "scene.bin"
    kind = "reflectance" if ortho else "radiance"
    y, x = ("northing", "easting") if ortho else ("lines", "samples")
    with netCDF4.Dataset(path, "w") as d:
        d.createDimension(y, lines)
        d.createDimension(x, samples)
        d.title = f"{sensor} {kind}"
        if ortho:
            d.createVariable("northing", "f8", (y,))[:] = 3768000 - 5 * (np.arange(lines) + 0.5)
            d.createVariable("easting", "f8", (x,))[:] = 383000 + 5 * (np.arange(samples) + 0.5)
            from osgeo import osr
            srs = osr.SpatialReference()
            srs.ImportFromEPSG(32611)
            mapping = d.createVariable("transverse_mercator", "i4", ())
            mapping.spatial_ref = srs.ExportToWkt()
        else:
            lon, lat = places(lines, samples)
            d.createVariable("lon", "f8", (y, x))[:] = lon
            d.createVariable("lat", "f8", (y, x))[:] = lat
        group = d.createGroup(kind)
        group.createDimension("wavelength", bands)
        if "wavelength" not in drop:
            group.createVariable("wavelength", "f4", ("wavelength",))[:] = wavelengths_of(bands)
        group.createVariable("fwhm", "f4", ("wavelength",))[:] = np.full(bands, 7.4)
        axes = ("wavelength", y, x) if ortho else (y, x, "wavelength")
        group.createVariable(kind, "f4", axes, fill_value=-9999., zlib=True)[:] = \
            values if ortho else np.moveaxis(values, 0, 2)
    return path


def tanager(folder, values, ortho=False, drop=()):
    """Tanager: Planet, Tanager core imagery product specification: HDFEOS/SWATHS/HYP (basic) or HDFEOS/GRIDS/HYP
    (ortho), the cube (band, line, sample) with wavelengths, fwhm and good_wavelengths as attributes."""
    import h5py
    bands, lines, samples = values.shape
    path = folder / "scene.bin"
    base = f"/HDFEOS/{'GRIDS' if ortho else 'SWATHS'}/HYP/"
    with h5py.File(path, "w") as h:
        cube = h.create_dataset(base + "Data Fields/surface_reflectance", data=values.astype("f4"),
                                chunks=(1, lines, samples), compression="gzip")
        cube.attrs["_FillValue"] = np.float32(-9999)
        if "wavelengths" not in drop:
            cube.attrs["wavelengths"] = wavelengths_of(bands)
        cube.attrs["fwhm"] = np.full(bands, 5.5, "f4")
        good = np.ones(bands, "u1")
        good[1] = 0
        cube.attrs["good_wavelengths"] = good
        if ortho:
            h[base].attrs["epsg_code"] = 32611
            corners = (f"UpperLeftPointMtrs=(383000.0,3768000.0)\n\t\tLowerRightMtrs=({383000 + 30 * samples}.0,"
                       f"{3768000 - 30 * lines}.0)")
            h["/HDFEOS INFORMATION/StructMetadata.0"] = np.bytes_(f"GROUP=GridStructure\n\t\t{corners}\nEND\n")
        else:
            lon, lat = places(lines, samples)
            h[base + "Geolocation Fields/Longitude"] = lon
            h[base + "Geolocation Fields/Latitude"] = lat
    return path


def _geotiff(path, values):
    from osgeo import gdal, osr
    bands, lines, samples = values.shape
    d = gdal.GetDriverByName("GTiff").Create(str(path), samples, lines, bands, gdal.GDT_Int16)
    d.SetGeoTransform((600000, 30, 0, 5300000, 0, -30))
    srs = osr.SpatialReference()
    srs.ImportFromEPSG(32632)
    d.SetProjection(srs.ExportToWkt())
    d.WriteArray(values.astype("i2"))
    d = None


def enmap(folder, values, level="L2A", listed=None, image="ENMAP01-SPECTRAL_IMAGE.TIF"):
    """EnMAP: DLR, EnMAP HSI L1B/L1C/L2A product specification (EN-PCV-ICD-2009): the image next to METADATA.XML."""
    bands = values.shape[0]
    _geotiff(folder / "ENMAP01-SPECTRAL_IMAGE.TIF", values)
    items = "".join(
        f'<bandID number="{b + 1}"><wavelengthCenterOfBand>{w:.6g}</wavelengthCenterOfBand><FWHMOfBand>7.25</FWHMOfBand>'
        "<GainOfBand>0.0001</GainOfBand><OffsetOfBand>0</OffsetOfBand></bandID>"
        for b, w in enumerate(wavelengths_of(listed or bands)))
    (folder / "ENMAP01-METADATA.XML").write_text(
        f'<?xml version="1.0" encoding="UTF-8"?><level_X><base><level>{level}</level>'
        "<temporalCoverage><startTime>2022-06-17T10:34:24.123456Z</startTime><stopTime>2022-06-17T10:34:28.5Z</stopTime></temporalCoverage>"
        "</base><specific>"
        f"<bandCharacterisation>{items}</bandCharacterisation><backgroundValue>-32768</backgroundValue></specific>"
        f"<product><image><merge><name>{image}</name></merge></image></product></level_X>")
    return folder / "ENMAP01-SPECTRAL_IMAGE.TIF"


def desis(folder, values):
    """DESIS: DLR, DESIS product definition (PAV-DES-TN): as EnMAP, with band elements."""
    bands = values.shape[0]
    _geotiff(folder / "DESIS-SPECTRAL_IMAGE.tif", values)
    items = "".join(
        f"<band><bandNumber>{b + 1}</bandNumber><wavelengthCenterOfBand>{w:.6g}</wavelengthCenterOfBand>"
        "<wavelengthWidthOfBand>3.5</wavelengthWidthOfBand><gainOfBand>0.0001</gainOfBand><offsetOfBand>0</offsetOfBand>"
        "<response>0.1,0.9</response></band>" for b, w in enumerate(wavelengths_of(bands, 401.7, 1000.4)))
    (folder / "DESIS-METADATA.xml").write_text(
        "<hsi_doc><base><level>L2A</level><temporalCoverage><startTime>2018-10-01T12:00:01.5</startTime>"
        "<endTime>2018-10-01T12:00:09</endTime></temporalCoverage></base><specific>"
        f"<bandCharacterisation>{items}</bandCharacterisation>"
        "<interiorOrientation><band><bandNumber>1</bandNumber></band></interiorOrientation></specific></hsi_doc>")
    return folder / "DESIS-SPECTRAL_IMAGE.tif"


def enmap_l1b(folder, vnir, swir, listed=None, stem="ENMAP01-", drop=()):
    """EnMAP L1B: one image per detector, next to one METADATA.XML with the bands of VNIR, then of SWIR. `listed`: their
    wavelengths."""
    images = [folder / f"{stem}SPECTRAL_IMAGE_{name}.TIF" for name in ("VNIR", "SWIR")]
    for image, values in zip(images, (vnir, swir)):
        if image.name not in drop:
            _geotiff(image, values)
    bands = vnir.shape[0] + swir.shape[0]
    listed = wavelengths_of(bands) if listed is None else listed
    items = "".join(
        f'<bandID number="{b + 1}"><wavelengthCenterOfBand>{w:.6g}</wavelengthCenterOfBand><FWHMOfBand>7.25</FWHMOfBand>'
        f"<GainOfBand>{0.0001 * (b + 1):.6g}</GainOfBand><OffsetOfBand>0</OffsetOfBand></bandID>"
        for b, w in enumerate(listed))
    (folder / f"{stem}METADATA.XML").write_text(
        f'<?xml version="1.0" encoding="UTF-8"?><level_X><base><level>L1B</level></base><specific>'
        f"<bandCharacterisation>{items}</bandCharacterisation><backgroundValue>0</backgroundValue></specific></level_X>")
    return images


def pace(folder, values, kind="rhos", drop=(), places_of=places):
    """PACE OCI L2: NASA OBPG, PACE OCI Level-2 format: geophysical_data with a cube (line, pixel, wavelength_3d) in 16
    bits, navigation_data with longitude and latitude."""
    import netCDF4
    bands, lines, samples = values.shape
    path = folder / "scene.bin"
    with netCDF4.Dataset(path, "w") as d:
        d.platform, d.instrument, d.title = "PACE", "OCI", "OCI Level-2 Data"
        d.time_coverage_start, d.time_coverage_end = "2024-05-01T17:13:53.000Z", "2024-05-01T17:18:52.999Z"
        for name, size in (("number_of_lines", lines), ("pixels_per_line", samples), ("wavelength_3d", bands)):
            d.createDimension(name, size)
        group = d.createGroup("sensor_band_parameters")
        if "wavelength_3d" not in drop:
            group.createVariable("wavelength_3d", "f8", ("wavelength_3d",))[:] = wavelengths_of(bands, 346, 2260)
        cube = d.createGroup("geophysical_data").createVariable(
            kind, "i2", ("number_of_lines", "pixels_per_line", "wavelength_3d"), fill_value=-32767, zlib=True)
        cube.set_auto_maskandscale(False)
        cube.scale_factor, cube.add_offset, cube.units = np.float32(2e-5), np.float32(0.5), "1"
        cube[:] = np.moveaxis(values, 0, 2).astype("i2")
        group = d.createGroup("navigation_data")
        for name, content in zip(("longitude", "latitude"), places_of(lines, samples)):
            group.createVariable(name, "f4", ("number_of_lines", "pixels_per_line"))[:] = content
    return path


def pace_l1b(folder, values, blue, red):
    """PACE OCI L1B: observation_data with rhot_blue, rhot_red and rhot_SWIR (band, scan, pixel), whose ranges
    overlap."""
    import netCDF4
    bands, lines, samples = values.shape
    path = folder / "scene.bin"
    ranges = {"blue": (values[:blue], 314, 605), "red": (values[blue:blue + red], 597, 894),
              "SWIR": (values[blue + red:], 940, 2258)}
    with netCDF4.Dataset(path, "w") as d:
        d.platform, d.instrument = "PACE", "OCI"
        d.createDimension("scans", lines)
        d.createDimension("pixels", samples)
        observed, parameters = d.createGroup("observation_data"), d.createGroup("sensor_band_parameters")
        for name, (part, first, last) in ranges.items():
            d.createDimension(name + "_bands", len(part))
            parameters.createVariable(name + "_wavelength", "f4", (name + "_bands",))[:] = \
                np.linspace(first, last, len(part))
            observed.createVariable("rhot_" + name, "f4", (name + "_bands", "scans", "pixels"),
                                    fill_value=-32767.)[:] = part
        group = d.createGroup("geolocation_data")
        for name, content in zip(("longitude", "latitude"), places(lines, samples)):
            group.createVariable(name, "f4", ("scans", "pixels"))[:] = content
    return path


def hico(folder, values, spelling=("scale_factor", "add_offset"), drop=()):
    """HICO L1B: NASA OBPG: products/Lt (line, sample, band) in 16 bits with wavelengths and fwhm as attributes, navigation
    with latitudes and longitudes."""
    import h5py
    bands, lines, samples = values.shape
    path = folder / "scene.bin"
    with h5py.File(path, "w") as h:
        cube = h.create_dataset("products/Lt", data=np.moveaxis(values, 0, 2).astype("u2"), chunks=True, compression="gzip")
        if "wavelengths" not in drop:
            cube.attrs["wavelengths"] = wavelengths_of(bands, 353, 1080)
        cube.attrs["fwhm"] = np.full(bands, 5.7, "f4")
        cube.attrs[spelling[0]], cube.attrs[spelling[1]] = np.array([0.02], "f4"), np.array([0.], "f4")
        cube.attrs["units"] = np.bytes_("W/m^2/micrometer/sr")
        lon, lat = places(lines, samples)
        h["navigation/longitudes"], h["navigation/latitudes"] = lon.astype("f4"), lat.astype("f4")
    return path
