# SPDX-License-Identifier: MIT
"""Makes small files with the names that the commands of docs/ read. NEEDS lists the names for each page, FILES makes
the files."""

import json
import subprocess

import numpy as np
from osgeo import gdal, ogr, osr

import product_files
from conftest import BIN, ROOT

SIZE = "70 130 150"


def tool(folder, line):
    name, *words = line.split()
    result = subprocess.run([BIN / ("gdal_hsi_" + name), *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert result.returncode == 0, f"{line}\n{result.stdout}"


def scene(size=SIZE, seed=4, more=""):
    """Returns a maker of a synthetic scene; .img is in ENVI format."""
    def make(folder, name):
        form = "" if name.endswith((".dat", ".bil", ".tif")) else "-of ENVI "
        kind = "" if "-corner" in more else "-pattern fields -endmembers 4 -targets 8"
        tool(folder, f"synth -q -size {size} -seed {seed} -snr 35 {kind} {more} {form}{name}")
    return make


def flight_line(east, more=""):
    return scene("60 200 40", 5, f"-corner {east} 0 " + more)


def with_angles(folder, name):
    """Makes a flight line and its angles: line1.img and line1_obs."""
    tool(folder, f"synth -q -size 60 400 40 -seed 5 -corner {10 * int(name[4])} 0 -sun 35 140 -of ENVI -geometry {name[:5]}_obs {name}")


def by(line, *before):
    """Returns a maker that runs a tool on other files."""
    def make(folder, name):
        for one in before:
            provide(folder, one)
        tool(folder, line.replace("NAME", name))
    return make


def labels(folder, name, size=SIZE, seed=4):
    tool(folder, f"synth -q -size {size} -seed {seed} -pattern fields -endmembers 4 -targets 8 -snr 35 -labels {name} of_{name}.dat")


def blocks(folder, name):
    """Makes labels of nine classes in blocks, on the grid of base.tif."""
    provide(folder, "base.tif")
    scene_ = gdal.Open(str(folder / "base.tif"))
    y, x = np.mgrid[0:scene_.RasterYSize, 0:scene_.RasterXSize]
    raster = gdal.GetDriverByName("GTiff").Create(str(folder / name), scene_.RasterXSize, scene_.RasterYSize, 1)
    raster.SetGeoTransform(scene_.GetGeoTransform())
    raster.SetProjection(scene_.GetProjection())
    raster.WriteArray((1 + y * 3 // len(y) * 3 + x * 3 // len(x[0])).astype("u1"))


def polygons(of="base.tif", points=False, values=False):
    """Returns a maker of squares (or points) of four classes over a scene, with the fields that pages use."""
    def make(folder, name):
        provide(folder, of)
        raster = gdal.Open(str(folder / of))
        x0, dx, _, y0, _, dy = raster.GetGeoTransform()
        driver = ogr.GetDriverByName("GPKG" if name.endswith("gpkg") else "GeoJSON")
        reference = osr.SpatialReference(wkt=raster.GetProjection())
        reference.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
        data = driver.CreateDataSource(str(folder / name))
        layer = data.CreateLayer("plots", reference, ogr.wkbPoint if points else ogr.wkbPolygon)
        texts = ("landcover", "crop", "name", "class")
        for field in texts:
            layer.CreateField(ogr.FieldDefn(field, ogr.OFTString))
        layer.CreateField(ogr.FieldDefn("nitrogen", ogr.OFTReal))
        size, number = 4, 0
        for line in range(2, raster.RasterYSize - size, 24):
            for sample in range(2, raster.RasterXSize - size, 13):
                feature = ogr.Feature(layer.GetLayerDefn())
                for field in texts:
                    feature.SetField(field, ("grassland", "soil", "water", "asphalt")[number % 4])
                feature.SetField("nitrogen", 1 + number % 7 * 0.4)
                left, top = x0 + sample * dx, y0 + line * dy
                right, bottom = left + size * dx, top + size * dy
                feature.SetGeometry(ogr.CreateGeometryFromWkt(
                    f"POINT ({left} {top})" if points else
                    f"POLYGON (({left} {top}, {right} {top}, {right} {bottom}, {left} {bottom}, {left} {top}))"))
                layer.CreateFeature(feature)
                number += 1
    return make


def truth_library(folder, name, size=SIZE, seed=4, rename=(), count=None):
    """Makes the true spectra of a synthetic scene as a table or an ENVI library."""
    tool(folder, f"synth -q -size 8 8 {size.split()[2]} -seed {seed} -snr 35 -endmembers 12 -truth truth_of_it.json -overwrite of_truth.tif")
    truth = json.loads((folder / "truth_of_it.json").read_text())
    names = [dict(rename).get(e["name"], e["name"]) for e in truth["endmembers"]]
    table = folder / (name.rsplit(".", 1)[0] + ".csv" if name.endswith(".csv") else name + ".csv")
    rows = [",".join(["wavelength_nm", *names[:count]])]
    rows += [",".join(map(str, row[:1 + (count or 12)])) for row in zip(truth["wavelengths_nm"], *(e["spectrum"] for e in truth["endmembers"]))]
    table.write_text("\n".join(rows) + "\n")
    if name.endswith(".sli"):
        provide(folder, "base.tif")
        tool(folder, f"resample -q -like base.tif {table.name} {name}")


def text(content):
    return lambda folder, name: (folder / name).write_text(content)


def gas_of(folder, name):
    """Makes the absorption of a gas at the bands of a scene, negative at two features."""
    provide(folder, "base.tif")
    raster = gdal.Open(str(folder / "base.tif"))
    nm = [float(raster.GetRasterBand(b + 1).GetMetadataItem("wavelength")) for b in range(raster.RasterCount)]
    rows = [f"{v},{-1e-4 * (np.exp(-((v - 2300) / 60) ** 2) + 0.5 * np.exp(-((v - 1650) / 40) ** 2)):.9g}" for v in nm]
    (folder / name).write_text("wavelength_nm,methane\n" + "\n".join(rows) + "\n")


def plume(folder, name):
    subprocess.run(["/usr/bin/python3", ROOT / "scripts" / "plume_scene", "-", "ch4.csv", name], cwd=folder, check=True)


def glt(of):
    """Makes a table that mirrors a scene."""
    def make(folder, name):
        provide(folder, of)
        raster = gdal.Open(str(folder / of))
        lines, samples = raster.RasterYSize, raster.RasterXSize
        y, x = np.mgrid[1:lines + 1, samples:0:-1]
        table = gdal.GetDriverByName("ENVI").Create(str(folder / name), samples, lines, 2, gdal.GDT_Int32)
        table.SetGeoTransform((500000, 30, 0, 5800000, 0, -30))
        table.SetProjection(raster.GetProjection() or "EPSG:32633")
        table.WriteArray(np.stack([x, y]).astype("i4"))
    return make


def copy(of):
    def make(folder, name):
        provide(folder, of)
        gdal.GetDriverByName("ENVI" if name.endswith((".img", ".dat")) else "GTiff").CreateCopy(str(folder / name), gdal.Open(str(folder / of)))
    return make


def netcdf(size="30 40 224", name_of_cube="reflectance"):
    """Makes a cube in a netCDF file."""
    def make(folder, name):
        import netCDF4
        samples, lines, bands = map(int, size.split())
        with netCDF4.Dataset(folder / name, "w") as data:
            for axis, length in (("y", lines), ("x", samples), ("wavelength", bands)):
                data.createDimension(axis, length)
            wavelength = data.createVariable("wavelength", "f4", ("wavelength",))
            wavelength.units = "nm"
            wavelength[:] = np.linspace(400, 2500, bands)
            cube = data.createVariable(name_of_cube, "f4", ("wavelength", "y", "x"))
            cube[:] = np.random.default_rng(1).uniform(0.1, 0.6, (bands, lines, samples))
    return make


def emit(folder, name):
    """Makes an EMIT product with any name, and a table that mirrors it."""
    values = np.random.default_rng(2).uniform(0.1, 0.6, (60, 40, 30)).astype("f4")
    y, x = np.mgrid[1:45, 36:0:-1].astype("i4")
    inside = (y <= 40) & (x <= 30)
    product_files.emit(folder, values, glt=(np.where(inside, x, 0), np.where(inside, y, 0))).rename(folder / name)


def emit_with_flags(folder, name):
    """Makes the same product next to its file of quality flags, ..MASK.. for ..RFL.."""
    import netCDF4
    emit(folder, name)
    with netCDF4.Dataset(folder / name.replace("RFL", "MASK"), "w") as data:
        labels_ = ["Cloud flag", "Cirrus flag", "Water flag", "AOD550"]
        for axis, length in (("downtrack", 40), ("crosstrack", 30), ("bands", len(labels_))):
            data.createDimension(axis, length)
        layers = np.zeros((40, 30, 4), "f4")
        layers[:5, :, 0] = 1
        layers[:, :, 3] = 0.2
        data.createVariable("mask", "f4", ("downtrack", "crosstrack", "bands"), fill_value=-9999.)[:] = layers
        data.createGroup("sensor_band_parameters").createVariable("mask_bands", str, ("bands",))[:] = np.array(labels_, object)


def prisma(folder, name):
    product_files.prisma(folder, np.random.default_rng(3).integers(3000, 9000, (60, 40, 30)).astype("u2")).rename(folder / name)


def enmap(folder, name):
    product_files.enmap(folder, np.random.default_rng(4).integers(100, 6000, (40, 50, 30)).astype("i2"))


def matlab(**arrays):
    """Makes a MATLAB file: name -> values of (random, shape)."""
    def make(folder, name):
        import scipy.io
        random = np.random.default_rng(5)
        scipy.io.savemat(folder / name, {key: value(random) for key, value in arrays.items()})
    return make


def endmembers_of(random):
    return random.uniform(0.1, 0.9, (30, 4))


RULES = json.dumps({"format": "gdal_hsi_rules", "version": 1, "library": "minerals.csv", "rules": [
    {"name": "kaolinite", "features": [{"windows": [2050, 2110, 2250, 2310]}], "limits": {"fit": [0.6, None]}}]})
SENTINEL = "wavelength,fwhm\n492.4,66\n559.8,36\n664.6,31\n832.8,106\n1613.7,91\n2202.4,175\n"

FILES = {
    **{name: scene() for name in ("base.tif", "scene.img", "scene.dat", "flightline.dat", "cpu.tif", "gpu.tif", "reference.tif", "result.tif",
                                  "before.img", "after.img", "june.img", "july.img", "old.dat", "new.dat", "other.img", "other_scene.img",
                                  "today.img")},
    **{f"line{k}.img": flight_line(10 * k) for k in (1, 2, 7)},
    "scene.nc": netcdf(), "emit.nc": netcdf(), "cube.nc": netcdf(name_of_cube="cube"),
    "labels.tif": labels,
    "train.tif": by("sample -q -n 20 -seed 1 labels.tif NAME test.tif", "labels.tif"),
    "test.tif": by("sample -q -n 20 -seed 1 -overwrite labels.tif train.tif NAME", "labels.tif"),
    "map.tif": copy("labels.tif"),
    "fields.gpkg": polygons(), "ground_truth.gpkg": polygons(), "panels.gpkg": polygons(), "plots.gpkg": polygons(),
    "soil.gpkg": polygons(), "lake.gpkg": polygons(), "playa.gpkg": polygons(), "test.gpkg": polygons(),
    "points.geojson": polygons(points=True),
    "fields1.gpkg": polygons("line1.img"), "fields2.gpkg": polygons("line2.img"),
    **{name: truth_library for name in ("minerals.sli", "library.sli", "endmembers.sli", "panels.sli", "minerals.csv",
                                        "usgs.sli", "crops.sli", "field.sli", "end.csv")},
    "s07_AV95_envi.sli": lambda folder, name: truth_library(folder, name, rename=(("Alunite", "Alunite GDS84"),)),
    "panel.csv": lambda folder, name: truth_library(folder, name, count=1),
    "methane.csv": gas_of, "gas.sli": truth_library,
    "features.csv": text("name,from_nm,to_nm\nkaolinite,2100,2300\nalunite,2080,2300\n"),
    "clay.json": text(RULES), "sentinel2.csv": text(SENTINEL),
    "spectra.csv": lambda folder, name: spectra_with_values(folder, name),
    "carbon.tif": lambda folder, name: tool(folder, f"synth -q -size {SIZE} -seed 4 -values {name} of_carbon.dat"),
    "radiance.img": plume, "emit_noise.txt": text("2000 0.01 1 0.01\n2500 0.01 1 0.01\n"), "glt.img": glt("radiance.img"),
    "EMIT_L2A_RFL_001_20230807T153242_2321910_007.nc": emit, "of_emit": emit,
    "EMIT_L2A_RFL_001_20220903T163129_2224611_012.nc": emit_with_flags, "PRS_L2D_STD_20230101.he5": prisma,
    "ENMAP01-METADATA.XML": enmap,
    "PaviaU.mat": matlab(paviaU=lambda r: r.uniform(100, 4000, (40, 30, 25))),
    "PaviaU_gt.mat": matlab(paviaU_gt=lambda r: r.integers(0, 4, (40, 30)).astype("u1")),
    "Indian_pines.mat": matlab(indian_pines_corrected=lambda r: r.uniform(100, 4000, (40, 30, 25))),
    "jasperRidge2_R198.mat": matlab(Y=lambda r: (endmembers_of(r) @ r.dirichlet(np.ones(4), 1200).T), nRow=lambda r: 40.0, nCol=lambda r: 30.0),
    "end4.mat": matlab(M=endmembers_of),
    "ang_rdn.img": scene("30 40 20"), "ang20150420t182050_glt": glt("ang_rdn.img"),
    "lines.txt": text("line1.img\nline2.img\nline7.img\n"), "others.txt": text("line7.img\n"),
    "pairs.txt": text("line2.img fields2.gpkg\n"), "line": flight_line(30), "line9.bil": flight_line(40),
    "yesterday.stat": by("statistics -q line1.img -o NAME", "line1.img"),
    "line7_map.tif": by("cluster -q -k 4 line7.img NAME", "line7.img"),
    "blocks": blocks, "with_angles": with_angles, "scene.tif": scene(),
    "profile.tif": by("eadp -q -nc 2 -c 3 -ts 30 base.tif NAME", "base.tif"),
    "model.json": by("svm_train -q -model NAME base.tif train.tif", "base.tif", "train.tif"),
    "of_profile": by("svm_train -q -model NAME of_eadp.tif train.tif", "train.tif", "of_eadp.tif:eadp"),
    "eadp": by("eadp -q -nc 4 base.tif NAME", "base.tif"),
    "of_components": by("svm_train -q -model NAME of_pcs.tif train.tif", "train.tif", "of_pcs.tif:pcs"),
    "pcs": by("pipeline -q read base.tif ! spp -ws 7 ! pca -nc 7 ! write NAME", "base.tif"),
    "of_trait": by("regression_train -q -field nitrogen base.tif plots.gpkg NAME", "base.tif", "plots.gpkg"),
    "mlr.json": by("sahic -q -no-spatial -model NAME base.tif train.tif of_mlr.tif", "base.tif", "train.tif"),
    "m.json": by("svm_train -q -probability -model NAME base.tif train.tif", "base.tif", "train.tif"),
    "probabilities.tif": by("svm_classify -q -apply m.json -probabilities NAME base.tif of_probabilities.tif", "m.json"),
    "road.sli": lambda folder, name: truth_library(folder, name, count=1),
    "abundances.tif": by("unmix -q base.tif library.sli NAME", "base.tif", "library.sli"),
    "true_abundances.tif": copy("abundances.tif"),
    "mnf.tif": by("mnf -q -nc 5 base.tif NAME", "base.tif"),
    "quality.tif": by("index -q -expr cloud=r550-r550 base.tif NAME", "base.tif"),
}


def spectra_with_values(folder, name):
    """Makes a table with a spectrum and its nitrogen per row."""
    nm, rng = np.linspace(400, 2400, 60), np.random.default_rng(3)
    rows = ["nitrogen," + ",".join(f"{v:.1f}" for v in nm)]
    for _ in range(60):
        t = rng.uniform(1, 4)
        spectrum = 0.4 + 0.1 * np.sin(nm / 300) - 0.03 * t * np.exp(-((nm - 2100) / 80) ** 2) + rng.normal(0, 0.001, 60)
        rows.append(f"{t:.3f}," + ",".join(f"{v:.5f}" for v in spectrum))
    (folder / name).write_text("\n".join(rows) + "\n")


NEEDS = {  # page -> files that its commands read, NAME or NAME:KIND of FILES; a page that is not listed reads scene.img
    "gdal_hsi_accuracy": "scene.img labels.tif test.tif train.tif map.tif ground_truth.gpkg panel.csv panels.gpkg " +
                         " ".join(f"map_{k}.tif:map.tif test_{k}.tif:map.tif" for k in range(1, 6)),
    "gdal_hsi_atdca": "scene.img minerals.sli flightline.dat",
    "gdal_hsi_cluster": "scene.img endmembers.sli",
    "gdal_hsi_compare": "endmembers.sli minerals.sli cpu.tif gpu.tif reference.tif result.tif before.img after.tif:scene.tif profile.tif "
                        "abundances.tif true_abundances.tif",
    "gdal_hsi_detect": "scene.img minerals.sli field.sli minerals.csv soil.gpkg features.csv",
    "gdal_hsi_eadp": "scene.img flightline.dat",
    "gdal_hsi_gas": "radiance.img emit_noise.txt glt.img",
    "gdal_hsi_identify": "scene.img minerals.csv clay.json",
    "gdal_hsi_info": "scene.img flightline.dat",
    "gdal_hsi_mnf": "scene.img july.img",
    "gdal_hsi_noise": "scene.img lake.gpkg",
    "gdal_hsi_normalise": "line1.img:with_angles line2.img:with_angles line3.img:with_angles",
    "gdal_hsi_orthorectify": "EMIT_L2A_RFL_001_20230807T153242_2321910_007.nc emit.nc:of_emit minerals.csv ang_rdn.img "
                             "ang20150420t182050_glt",
    "gdal_hsi_pca": "june.img july.img scene.img",
    "gdal_hsi_pipeline": "scene.dat old.dat new.dat land.json:model.json model.json:of_profile",
    "gdal_hsi_quicklook": "",
    "gdal_hsi_reflect": "scene.img playa.gpkg panels.gpkg panels.sli other.img",
    "gdal_hsi_regression_predict": "scene.img test.gpkg gp.json:of_trait nitrogen.json:of_trait lma.json:of_trait model.json:of_trait",
    "gdal_hsi_regression_train": "scene.img plots.gpkg spectra.csv carbon.tif",
    "gdal_hsi_regularize": "scene.img probabilities.tif train.tif",
    "gdal_hsi_resample": "emit.nc scene.img usgs.sli sentinel2.csv",
    "gdal_hsi_sahic": "scene.img train.tif fields.gpkg other_scene.img pavia.tif:scene.tif",
    "gdal_hsi_sample": "scene.img labels.tif:blocks fields.gpkg mnf.tif",
    "gdal_hsi_spectra": "scene.img fields.gpkg labels.tif points.geojson",
    "gdal_hsi_spp": "scene.img flightline.dat scene.nc",
    "gdal_hsi_statistics": "line1.img line2.img",
    "gdal_hsi_svm_classify": "scene.img profile.tif:eadp model.json:of_profile m.json",
    "gdal_hsi_svm_train": "scene.img profile.tif train.tif fields.gpkg",
    "gdal_hsi_synth": "",
    "gdal_hsi_unmix": "scene.img endmembers.sli minerals.csv s07_AV95_envi.sli",
    "backgrounds": "scene.img road.sli",
    "campaigns": "line1.img line2.img line7.img today.img:line fields1.gpkg fields2.gpkg gas.sli lines.txt others.txt pairs.txt "
                 "line7_map.tif yesterday.stat line9.bil",
    "chains": "scene.dat model.json:of_components",
    "detection": "scene.img minerals.sli methane.csv radiance.img:scene.img",
    "headers": "scene.nc:cube.nc",
    "labels": "labels.tif map.tif",
    "masks": "scene.img quality.tif EMIT_L2A_RFL_001_20220903T163129_2224611_012.nc",
    "pixel_functions": "scene.img library.sli other.img train.tif model.json mlr.json",
    "products": "EMIT_L2A_RFL_001_20230807T153242_2321910_007.nc PRS_L2D_STD_20230101.he5 ENMAP01-METADATA.XML emit.nc:of_emit PaviaU.mat "
                "PaviaU_gt.mat Indian_pines.mat jasperRidge2_R198.mat end4.mat",
    "thresholds": "scene.img minerals.sli soil.gpkg",
    **{page: "" for page in ("README", "how_do_i", "troubleshooting")},
}


def provide(folder, name):
    """Makes the file NAME, or NAME as a file of another KIND (NAME:KIND), if it does not exist."""
    name, _, kind = name.partition(":")
    if not (folder / name).exists():
        FILES[kind or name](folder, name)


def provide_all(folder, page):
    for name in NEEDS.get(page, "scene.img").split():
        provide(folder, name)
