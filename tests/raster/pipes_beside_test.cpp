// SPDX-License-Identifier: MIT
// Pipes and devices next to a scene or named in its header. GDAL would wait for their other end, so a test
// that hangs has failed.
#include "raster/products/binary_names.h"
#include "raster/products/pipes_beside.h"
#include "support/raster_fixtures.h"

#include "raster/side_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>

namespace hsi::test {
namespace {

using raster::pipe_beside, raster::texts_of_imagine;

std::string refusal(const std::string& path) {
    try {
        raster::OpenOptions options;
        options.path = path;
        raster::open_raster(options);
    } catch (const Error& e) {
        return e.what();
    }
    return {};
}

void make_pipe(const std::string& path) { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0) << path; }

std::string vrt_of(const std::string& source) {
    return "<VRTDataset rasterXSize=\"4\" rasterYSize=\"3\"><VRTRasterBand dataType=\"Float32\" band=\"1\">"
           "<SimpleSource><SourceFilename relativeToVRT=\"1\">" +
           source + "</SourceFilename></SimpleSource></VRTRasterBand></VRTDataset>";
}

TEST(PipesBeside, SideFilesThatArePipesAreRefused) {
    for (const char* const scene : {"s.dat", "s.tif"}) {
        const TempFolder folder;
        create_gdal(std::string(scene) == "s.dat" ? "ENVI" : "GTiff", folder / scene, 4, 3, 2, GDT_Float32);
        ASSERT_EQ(refusal(folder / scene), "");
        const std::string name = scene;
        for (const std::string& side :
             {name + ".ovr", name + ".msk", name + ".aux.xml", name + ".hdr", name + ".HDR",
              std::string("s.sta"), std::string("s.aux"), std::string("s.IMD"), std::string("s.RPB"),
              std::string("s_RPC.TXT"), std::string("s_rpc.txt"), std::string("S.XML"),
              std::string("METADATA.DIM"), std::string("RPC_x.XML"), std::string("x_MTL.txt")}) {
            make_pipe(folder / side);
            EXPECT_NE(refusal(folder / scene).find("'" + (folder / side) + "', which is a pipe"),
                      std::string::npos)
                << side;
            EXPECT_FALSE(raster::files_read_with(folder / scene).empty()); // does not wait
            fs::remove(folder / side);
        }
        fs::create_symlink("/dev/zero", folder / (name + ".ovr"));
        EXPECT_NE(refusal(folder / scene), "");
        fs::remove(folder / (name + ".ovr"));
        fs::create_symlink("nowhere", folder / (name + ".ovr"));
        for (const char* const other : {"other.ovr", "s2.dat.ovr", "sx", "log.txt"})
            make_pipe(folder / other);
        EXPECT_EQ(refusal(folder / scene), "");
    }
}

TEST(PipesBeside, HeadersThatNamePipesAreRefused) {
    const TempFolder folder;
    fs::create_directory(folder / "inner");
    make_pipe(folder / "the pipe");
    make_pipe(folder / "P.IMG");
    make_pipe(folder / "inner/p");
    create_gdal("GTiff", folder / "inner/q.tif", 4, 3, 1, GDT_Float32);
    make_pipe(folder / "inner/q.tif.ovr");
    const std::string ers = "DatasetHeader Begin\n\tVersion = \"6.0\"\n\tRasterInfo Begin\n\t\tCellType = "
                            "IEEE4ByteReal\n\t\tNrOfLines = 3\n\t\tNrOfCellsPerLine = 4\n\t\tNrOfBands = "
                            "1\n\tRasterInfo End\n\tDataFile = ";
    const std::string pds = "PDS_VERSION_ID = PDS3\nRECORD_TYPE = FIXED_LENGTH\nRECORD_BYTES = 16\n^IMAGE = ";
    const std::string pds_end = "\nOBJECT = IMAGE\n LINES = 3\n LINE_SAMPLES = 4\n SAMPLE_TYPE = "
                                "PC_REAL\n SAMPLE_BITS = 32\nEND_OBJECT = IMAGE\nEND\n";
    const std::string isis = "Object = IsisCube\n Object = Core\n  StartByte = 1\n  ^Core = ";
    const std::string isis_end =
        "\n  Format = BandSequential\n  Group = Dimensions\n   Samples = 4\n   Lines "
        "= 3\n   Bands = 1\n  End_Group\n  Group = Pixels\n   Type = Real\n   "
        "ByteOrder = Lsb\n  End_Group\n End_Object\nEnd_Object\nEnd\n";
    struct Case {
        std::string name, text;
        bool refused = true;
    };
    const std::string pad(2 << 20, ' ');
    for (const Case& c : std::vector<Case>{
             {"a.ers", ers + "\"the pipe\"\nDatasetHeader End\n"},
             {"b.ers", ers + "the pipe\nDatasetHeader End\n"},
             {"c.ers", ers + "/dev/zero\nDatasetHeader End\n"},
             {"d.ers", ers + pad + "\"inner/p\"\nDatasetHeader End\n"},
             {"e.lbl", pds + "\"P.IMG\"" + pds_end},
             {"f.lbl", pds + "(\"p.img\", 1)" + pds_end},
             {"g.lbl", pds + "\"inner/p\"" + pds_end},
             {"h.lbl", pds + "P.IMG" + pds_end},
             {"i.cub", isis + "inner/p" + isis_end},
             {"j.cub", isis + "\"" + (folder / "the pipe") + "\"" + isis_end},
             {"k.vrt", vrt_of("the pipe")},
             {"l.vrt", vrt_of("inner/&#112;")},
             {"m.vrt", vrt_of("<![CDATA[inner/p]]>")},
             {"n.vrt", vrt_of("inner/q.tif")},
             {"o.vrt", vrt_of("k.vrt")},
             {"q.vrt", vrt_of("/vsisubfile/0_100," + (folder / "inner/p"))},
             {"r.vrt", vrt_of("vrt://" + (folder / "inner/q.tif") + "?bands=1")},
             {"s.lbl", pds + "\"none.img\"" + pds_end + "/dev/zero \"inner/p\"", false},
             {"t.vrt",
              "<VRTDataset rasterXSize=\"4\" rasterYSize=\"3\"><Metadata><MDI key=\"HSI_HISTORY\">"
              "gdal_hsi_vd -report /dev/stderr a</MDI></Metadata></VRTDataset>",
              false},
             {"u.txt", "made by: a program > /dev/null", false},
             {"v.txt", "not in . or ./ or ./. or /", false}}) {
        write_text(folder / c.name, c.text);
        const std::string found = pipe_beside(folder / c.name);
        EXPECT_EQ(!found.empty(), c.refused) << c.name << ": " << found;
        if (c.refused) {
            EXPECT_NE(refusal(folder / c.name).find("which is a pipe or a device"), std::string::npos)
                << c.name;
        }
        EXPECT_FALSE(raster::files_read_with(folder / c.name).empty());
    }
}

std::string big_endian(uint32_t value, int bytes) {
    std::string out;
    while (bytes-- > 0)
        out += static_cast<char>(value >> (8 * bytes) & 255);
    return out;
}

/// Returns an HDF4 file with one element that is in another file.
std::string hdf4_with_external(const std::string& name) {
    constexpr uint32_t scientific_data = 702, special = 0x4000, at = 22;
    const std::string element = big_endian(2, 2) + big_endian(48, 4) + big_endian(0, 4) +
                                big_endian(static_cast<uint32_t>(name.size()), 4) + name;
    return "\x0e\x03\x13\x01" + big_endian(1, 2) + big_endian(0, 4) +
           big_endian(special | scientific_data, 2) + big_endian(2, 2) + big_endian(at, 4) +
           big_endian(static_cast<uint32_t>(element.size()), 4) + element;
}

TEST(PipesBeside, NamesInBinaryFilesAreRefused) {
    const TempFolder folder;
    fs::create_directory(folder / "in");
    make_pipe(folder / "in/p.ige");
    write_text(folder / "in/file", "0123456789012345");
    const std::string tree = folder / "spill.img", changed = folder / "a.img";
    create_gdal("HFA", tree, 4, 3, 1, GDT_Float32, {"USE_SPILL=YES"});
    const auto put = [](std::string text, const std::string& old, const std::string& now) {
        const size_t at = text.find(old + '\0');
        EXPECT_NE(at, std::string::npos) << old;
        return at == std::string::npos ? text : text.replace(at, now.size(), now);
    };
    std::ifstream in(tree, std::ios::binary);
    const std::string img((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    EXPECT_EQ(refusal(tree), "");
    write_text(changed, put(img, "spill.ige", std::string("in/p.ige\0", 9)));
    EXPECT_EQ(pipe_beside(changed), folder / "in/p.ige");
    EXPECT_NE(refusal(changed).find("which is a pipe or a device"), std::string::npos);
    write_text(folder / "a.vrt", vrt_of("a.img"));
    EXPECT_EQ(pipe_beside(folder / "a.vrt"), folder / "in/p.ige");
    for (size_t bytes = 0; bytes < img.size(); bytes += 97) { // a truncated tree
        write_text(changed, img.substr(0, bytes));
        EXPECT_EQ(pipe_beside(changed), "") << bytes;
    }
    // Metadata and statistics contain words of all types.
    create_gdal("HFA", folder / "b.img", 4, 3, 1, GDT_Float32, {});
    {
        const GDALDatasetUniquePtr update(GDALDataset::Open((folder / "b.img").c_str(), GDAL_OF_UPDATE));
        ASSERT_NE(update, nullptr);
        EXPECT_EQ(update->SetMetadataItem("history", "in/p.ige"), CE_None);
    }
    EXPECT_EQ(pipe_beside(folder / "b.img"), "");
    EXPECT_TRUE(texts_of_imagine(folder / "b.img").empty());
    // Overviews are in a separate file.
    {
        const GDALDatasetUniquePtr update(GDALDataset::Open((folder / "b.img").c_str(), GDAL_OF_UPDATE));
        ASSERT_NE(update, nullptr);
        CPLSetThreadLocalConfigOption("HFA_USE_RRD", "YES");
        const int factor = 2;
        EXPECT_EQ(update->BuildOverviews("NEAREST", 1, &factor, 0, nullptr, nullptr, nullptr), CE_None);
        CPLSetThreadLocalConfigOption("HFA_USE_RRD", nullptr);
    }
    std::string named;
    for (const std::string& text : texts_of_imagine(folder / "b.img"))
        named += text + "|";
    EXPECT_NE(named.find("b.rrd"), std::string::npos) << named;
    // HDF4 searches relative to the working directory.
    write_text(folder / "a.hdf", hdf4_with_external(folder / "in/p.ige"));
    EXPECT_EQ(pipe_beside(folder / "a.hdf"), folder / "in/p.ige");
    write_text(folder / "a.hdf", hdf4_with_external(folder / "in/file"));
    EXPECT_EQ(pipe_beside(folder / "a.hdf"), "");
}

TEST(PipesBeside, NamesInJsonAreRefused) {
    const TempFolder folder;
    fs::create_directory(folder / "in");
    make_pipe(folder / "in/p");
    const std::string path = folder / "a.json", begin = "{\"stac_version\": \"1.0.0\", \"assets\": {\"a\": ";
    for (const std::string& name : {std::string("in/p"), std::string("in\\/p"), std::string("in\\u002fp"),
                                    "file://" + (folder / "in/p")}) {
        write_text(path, begin + "{\"href\": \"" + name + "\"}}}");
        EXPECT_EQ(pipe_beside(path), folder / "in/p") << name;
    }
    write_text(path, begin + "[\"gdal_hsi_vd -report /dev/stderr in/q\"]}}");
    EXPECT_EQ(pipe_beside(path), "");
}

/// Words in pixels are not names: otherwise a megabyte of them would be looked up.
TEST(PipesBeside, PixelsAreNoText) {
    const TempFolder folder;
    fs::create_directory(folder / "in");
    make_pipe(folder / "in/p");
    write_text(folder / "a.dat", "1234567890123456\x01\x02 in/p " + std::string(100, '.'));
    EXPECT_EQ(pipe_beside(folder / "a.dat"), "");
    write_text(folder / "a.txt", "1234567890123456\t in/p " + std::string(100, '.'));
    EXPECT_EQ(pipe_beside(folder / "a.txt"), folder / "in/p");
}

TEST(PipesBeside, PipesWithinAFolderAreRefused) {
    const TempFolder folder;
    fs::create_directories(folder / "scene/band/c/0/1");
    make_pipe(folder / "scene/band/c/0/1/2");
    EXPECT_EQ(pipe_beside(folder / "scene"), ""); // a folder with arbitrary contents
    write_text(folder / "scene/.zgroup", "{\"zarr_format\": 2}");
    EXPECT_EQ(pipe_beside(folder / "scene"), folder / "scene/band/c/0/1/2");
    fs::remove(folder / "scene/band/c/0/1/2");
    fs::create_directory_symlink("../..", folder / "scene/band/c/round");
    EXPECT_EQ(pipe_beside(folder / "scene"), "");
    make_pipe(folder / "scene/band/.zarray");
    EXPECT_EQ(pipe_beside(folder / "scene"), folder / "scene/band/.zarray");
}

/// The listing of a folder is kept until the folder changes.
TEST(PipesBeside, EntriesThatComeLaterAreSeen) {
    const TempFolder folder;
    write_text(folder / "s.dat", "0123456789");
    const struct timespec old[2] = {{1000, 0}, {1000, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, folder.path().c_str(), old, 0), 0);
    EXPECT_EQ(pipe_beside(folder / "s.dat"), "");
    make_pipe(folder / "s.ovr");
    EXPECT_EQ(pipe_beside(folder / "s.dat"), folder / "s.ovr");
    fs::remove(folder / "s.ovr");
    EXPECT_EQ(pipe_beside(folder / "s.dat"), "");
}

} // namespace
} // namespace hsi::test
