// SPDX-License-Identifier: MIT
// Documents, models and statistics files from strangers. The test edits every list, number, text and flag,
// and computes pixels from the documents that are accepted. Nothing may crash (AddressSanitizer checks this),
// and a list of another length must be refused.
#include "core/error.h"
#include "core/json.h"
#include "core/text_file.h"
#include "identify/identify.h"
#include "identify/rules.h"
#include "links/links.h"
#include "mnf/mnf.h"
#include "normalise/normalise.h"
#include "raster/files/document_names.h"
#include "raster/gdal_errors.h"
#include "raster/raster_source.h"
#include "raster/scene_document.h"
#include "regression/regression.h"
#include "statistics/statistics.h"

#include <gdal_priv.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace hsi {
namespace {

namespace fs = std::filesystem;
using stream::Link;

constexpr int samples = 19, lines = 7, bands = 5;

struct Edit {
    std::string what; ///< for example "/operation/settings/rows 40 times"
    Json document;
    bool length = false; ///< the length of a list was changed
};

/// Lists values that may replace a value.
void replacements(const Json& value, const std::function<void(const char*, Json, bool)>& put) {
    if (value.is_array()) {
        Json less = value, more = value, many = Json::array();
        if (!less.empty()) less.erase(less.size() - 1);
        more.push_back(value.empty() ? Json(0) : value.back());
        for (int k = 0; k < 40; ++k)
            many.insert(many.end(), value.begin(), value.end());
        put("emptied", Json::array(), true);
        put("one less", less, true);
        put("one more", more, true);
        put("40 times", many, true);
        put("as an object", Json::object(), false);
    } else if (value.is_number()) {
        const auto x = value.get<double>();
        put("0", 0, false);
        put("less 1", x - 1, false);
        put("and 1", x + 1, false);
        put("and a half", x + .5, false);
        put("-1", -1, false);
        put("2^63", uint64_t{1} << 63, false);
        put("1e9", 1e9, false);
        put("1e300", 1e300, false);
        put("as a text", "7", false);
    } else if (value.is_string()) {
        put("empty text", "", false);
        put("huge text", std::string(100000, 'x'), false);
        put("text with zero byte", std::string("a\0b", 3), false);
        for (const char* other : {"sam", "sid", "mf", "ace", "rx", "nnls", "scls", "features", "removed"})
            put(other, other, false);
        put("number", 3, false);
    } else if (value.is_boolean()) {
        put("the other", !value.get<bool>(), false);
        put("number", 3, false);
    }
    if (!value.is_null()) put("null", nullptr, false);
}

/// Visits all edits of a document, one at a time. Of long lists, it edits the first, the middle and the last
/// entry.
void each_edit(const Json& whole, const std::function<void(const Edit&)>& visit) {
    const std::function<void(const Json::json_pointer&)> walk = [&](const Json::json_pointer& at) {
        const Json& value = whole.at(at);
        replacements(value, [&](const char* what, Json other, bool length) {
            if (other == value) return;
            Edit edit{at.to_string() + " " + what, whole, length};
            edit.document[at] = std::move(other);
            visit(edit);
        });
        if (value.is_array())
            for (size_t k = 0; k < value.size(); ++k) {
                if (k == 0 || k == value.size() / 2 || k + 1 == value.size()) walk(at / k);
            }
        else if (value.is_object())
            for (const auto& [key, member] : value.items()) {
                walk(at / key);
                Edit edit{(at / key).to_string() + " removed", whole, false};
                edit.document.at(at).erase(key);
                visit(edit);
            }
    };
    walk(Json::json_pointer());
}

struct Counts {
    int edits = 0, refused = 0, computed = 0;
    void print(const std::string& kind) const {
        std::printf("%s: %d edits, %d refused, %d taken\n", kind.c_str(), edits, refused, computed);
    }
};

class UntrustedDocuments : public ::testing::Test {
  protected:
    void SetUp() override {
        GDALAllRegister();
        links::register_links();
        fs::create_directories(m_folder);
        std::ofstream header(m_folder + "/s.hdr");
        header << "ENVI\nsamples = " << samples << "\nlines = " << lines << "\nbands = " << bands
               << "\nheader offset = 0\nfile type = ENVI Standard\ndata type = 4\ninterleave = bsq\nbyte "
                  "order = 0\n";
        header.close();
        std::ofstream data(m_folder + "/s.dat", std::ios::binary);
        for (int k = 0; k < samples * lines * bands; ++k) {
            const float v = 1.0f + static_cast<float>(k * 37 % 101);
            data.write(reinterpret_cast<const char*>(&v), sizeof v);
        }
    }
    void TearDown() override { fs::remove_all(m_folder); }

    static std::string description(int count, const char* type) {
        std::string text = "<VRTDataset rasterXSize=\"" + std::to_string(samples) + "\" rasterYSize=\"" +
                           std::to_string(lines) + "\">";
        for (int b = 1; b <= count; ++b)
            text +=
                "<VRTRasterBand dataType=\"" + std::string(type) + "\" band=\"" + std::to_string(b) + "\"/>";
        return text + "</VRTDataset>";
    }

    /// Returns a document of this operation, which computes `count` bands from the first `used` bands of the
    /// scene.
    Json document(const Link& link, int count, int used = bands, const char* type = "Float32") const {
        raster::SceneDocument d;
        d.link = link;
        d.made_by = "a test";
        d.source.path = m_folder + "/s.dat";
        d.source.bands.resize(static_cast<size_t>(used));
        std::iota(d.source.bands.begin(), d.source.bands.end(), 1);
        d.source.files = raster::files_as_they_are(d.source.path);
        d.raster = description(count, type);
        return Json::parse(raster::scene_document_text(d, m_path));
    }

    void write(const std::string& text) const { std::ofstream(m_path, std::ios::binary) << text; }

    /// Opens the document that was written, and computes all its pixels. Throws Error.
    void compute() const {
        raster::OpenOptions options;
        options.path = m_path;
        const auto source = raster::open_raster(options);
        const auto shape = source->shape();
        std::vector<float> values(static_cast<size_t>(shape.samples * shape.lines * shape.bands));
        source->open_reader()->read(
            {0, 0, shape.samples, shape.lines},
            CubeView<float>::packed(values.data(), shape.bands, shape.lines, shape.samples));
    }

    std::string refusal(const std::string& text) const {
        write(text);
        try {
            compute();
        } catch (const Error& e) {
            return e.what();
        }
        return {};
    }

    void walk(const std::string& kind, const Json& good) const {
        ASSERT_EQ(refusal(good.dump()), "") << kind;
        Counts counts;
        each_edit(good, [&](const Edit& edit) {
            ++counts.edits;
            const bool taken = refusal(edit.document.dump()).empty();
            ++(taken ? counts.computed : counts.refused);
            EXPECT_FALSE(taken && edit.length) << kind << ": " << edit.what;
        });
        counts.print(kind);
    }

    const std::string m_folder =
        fs::temp_directory_path().string() + "/hsi untrusted " + std::to_string(getpid());
    const std::string m_path = m_folder + "/y.hsi";
};

std::vector<double> some(size_t count, double first = .1) {
    std::vector<double> values(count);
    for (size_t k = 0; k < count; ++k)
        values[k] = first + .01 * static_cast<double>(k * 7 % 13);
    return values;
}

detect::Detector detector(detect::Method method) {
    detect::Detector d;
    d.method = method;
    d.bands = bands;
    d.used = {0, 1, 3, 4};
    d.targets = detect::has_target(method) ? 2 : 0;
    const auto sizes = detect::sizes_of(method, d.used.size(), static_cast<size_t>(d.targets));
    d.centre = some(sizes.centre);
    d.rows = some(sizes.rows);
    d.log_rows = some(sizes.log_rows);
    d.constants = some(sizes.constants);
    d.factor = some(sizes.factor);
    d.deviation = some(sizes.deviation);
    return d;
}

std::string corpus(const std::string& name) {
    return read_text_file(HSI_SOURCE_DIR "/tests/fuzz/corpus/" + name, largest_file::model);
}

TEST_F(UntrustedDocuments, AreNeverTakenWithListsOfAnotherLength) {
    pca::Transform transform;
    transform.inputs = bands;
    transform.outputs = 2;
    transform.matrix = some(2 * bands);
    transform.offset = some(2);
    const unmix::Endmembers endmembers{{"a", "b"}, {{1, 2, 3, 4, 5}, {5, 3, 1, 4, 2}}};
    const std::vector<math::ResampledBand> resampled{{0, {0, 1}, {.5, .5}}, {1, {2, 3, 4}, {.25, .5, .25}}};
    const std::vector<features::Range> ranges{{{0, 1, 2, 3, 4}, {400, 500, 600, 700, 800}}};
    walk("spp", document(links::displacement(3, some(bands, 5)), bands));
    walk("transform", document(links::transform(transform), 2));
    walk("unmix", document(links::unmixing(endmembers, unmix::Method::fcls, false), 2));
    walk("unmix, error", document(links::unmixing(endmembers, unmix::Method::ucls, true), 1));
    walk("nearest",
         document(links::nearest_target({{1, 2, 3, 4, 5}, {5, 3, 1, 4, 2}}, 90), 1, bands, "Byte"));
    walk("resample", document(links::resampling(bands, resampled), 2));
    walk("features", document(links::feature_bands(bands, ranges, features::Output::features), 5));
    const char* const rules =
        R"({"format": "gdal_hsi_rules", "version": 1,
            "rules": [{"name": "a", "features": [{"windows": [400, 500, 700, 800]}], "limits": {"fit": [0.1, null]}},
                      {"name": "b", "features": [{"windows": [400, 400, 700, 800]}]}]})";
    walk("identify", document(links::identification(
                                  rules,
                                  identify::plan_rules(identify::read_rules(rules, "rules"), {},
                                                       {{400, 500, 600, 700, 800}, {}, {}, 1},
                                                       {{"a", {5, 4, 3, 4, 5}}, {"b", {5, 3, 4, 5, 6}}}),
                                  0),
                              1, bands, "Byte"));
    walk("index", document(links::index_bands(bands, {"b1/b2", "edge(r[400:800])"},
                                              {{400, 500, 600, 700, 800}, {}, {}, {}, {}}),
                           2));
    walk("removed", document(links::feature_bands(bands, ranges, features::Output::removed), bands));
    walk("columns", document(links::striped_columns(
                                 bands, {samples, some(bands * samples), some(bands * samples), samples}),
                             bands));
    for (const auto method :
         {smooth::Method::whittaker, smooth::Method::absorbance, smooth::Method::msc, smooth::Method::detrend,
          smooth::Method::normalise, smooth::Method::gain, smooth::Method::log_residual}) {
        smooth::Transform t;
        t.method = method;
        t.wavelengths = {400, 500, 600, 700, 800};
        t.reference = t.gain = t.offset = some(bands);
        walk(smooth::name_of(method), document(links::transformed_spectra(bands, t), bands));
    }
}

TEST_F(UntrustedDocuments, OfDetectorsAreNeverTakenWithListsOfAnotherLength) {
    for (const auto method : {detect::Method::sam, detect::Method::sid, detect::Method::mf,
                              detect::Method::cem, detect::Method::ace, detect::Method::rx})
        walk(std::string("detect ") + detect::name_of(method),
             document(links::detection(detector(method)), detect::has_target(method) ? 2 : 1));
}

TEST_F(UntrustedDocuments, OfModelsAreNeverTakenWithListsOfAnotherLength) {
    const Link svm = links::svm_classes(svm::from_json(corpus("svm_model/small"), "svm"));
    const Link mlr = links::mlr_classes(sahic::from_json(corpus("mlr_model/small"), "mlr"));
    for (Link link : {svm, mlr}) {
        walk(link.operation, document(link, 1, 2, "Byte"));
        link.settings["model"].erase("checksum");
        walk(link.operation + " without checksum", document(link, 1, 2, "Byte"));
    }
}

TEST_F(UntrustedDocuments, OfRegressionsAreNeverTakenWithListsOfAnotherLength) {
    const regression::Inputs inputs{{{0, {0}, {1.0}}, {1, {1}, {1.0}}}, {}, {}};
    for (const char* const name : {"small", "linear"}) {
        const auto model = std::make_shared<const regression::Model>(
            regression::from_json(corpus(std::string("regression_model/") + name), name));
        Link link = links::estimates(2, {{model, inputs}});
        walk(std::string("regression ") + name, document(link, 3, 2));
        link.settings["model 1"].erase("checksum");
        walk(std::string("regression without checksum ") + name, document(link, 3, 2));
    }
}

/// Uses texts that an editor of JSON would not write.
TEST_F(UntrustedDocuments, OfAnyBytesAreRefused) {
    const std::string good = document(links::displacement(3, some(bands, 5)), bands).dump();
    ASSERT_EQ(refusal(good), "");
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        const size_t at = text.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        return text.replace(at, from.size(), to);
    };
    const std::string deep(100000, '[');
    for (const std::string& text :
         {with("\"window\":3", "\"window\":1e400"), with("\"window\":3", "\"window\":NaN"),
          with("\"window\":3", "\"window\":3,\"window\":5"),
          with("\"version\":1", "\"version\":1,\"version\":1"), with("\"version\":1", "\"version\":-1"),
          with("\"version\":1", "\"version\":1,\"more\":2"), with("\"window\":3", "\"window\":3,\"more\":2"),
          with("a test", "a \xff test"), with("a test", std::string("a\0test", 6)),
          with("\"window\":3", "\"window\":" + deep), deep,
          with("\"window\":3", "\"window\":" + deep + std::string(deep.size(), ']')),
          with("\"made_by\":\"a test\"", "\"made_by\":[]"), good.substr(0, good.size() / 2), good + good,
          std::string("{"), std::string("null")}) {
        const std::string said = refusal(text);
        EXPECT_NE(said, "") << text.substr(0, 200);
    }
    for (int count : {65537, 3000000}) {
        Json many = Json::parse(good);
        many["source"]["bands"] = std::vector<int>(static_cast<size_t>(count), 1);
        EXPECT_NE(refusal(many.dump()).find("at most 65536 are possible"), std::string::npos);
    }
}

/// Copies may keep whole seconds of the time of modification, and nothing finer is compared then.
TEST_F(UntrustedDocuments, AreRefusedWhereASourceHasAnotherTime) {
    const auto set_time = [&](time_t seconds, long nanoseconds) {
        const timespec times[] = {{seconds, nanoseconds}, {seconds, nanoseconds}};
        ASSERT_EQ(utimensat(AT_FDCWD, (m_folder + "/s.dat").c_str(), times, 0), 0);
    };
    constexpr time_t seconds = 1700000000;
    struct Case {
        long at_first;
        time_t now;
        long now_nanoseconds;
        bool same;
    };
    for (const auto& one :
         {Case{500000000, seconds, 500000000, true}, Case{500000000, seconds, 0, true},
          Case{0, seconds, 500000000, true}, Case{500000000, seconds, 500000001, false},
          Case{500000000, seconds + 1, 500000000, false}, Case{500000000, seconds + 1, 0, false}}) {
        set_time(seconds, one.at_first);
        const std::string text = document(links::displacement(3, some(bands, 5)), bands).dump();
        set_time(one.now, one.now_nanoseconds);
        EXPECT_EQ(refusal(text).empty(), one.same)
            << one.at_first << ' ' << one.now << ' ' << one.now_nanoseconds;
    }
}

/// Returns WKT2 with a shift by a file.
std::string bound_crs(const std::string& grid) {
    return R"(BOUNDCRS[SOURCECRS[GEOGCRS["a",DATUM["a",ELLIPSOID["a",6378137,298.25]],)"
           R"(CS[ellipsoidal,2],AXIS["latitude",north],AXIS["longitude",east],ANGLEUNIT["degree",)"
           R"(0.0174532925199433]]],TARGETCRS[GEOGCRS["WGS 84",DATUM["World Geodetic System 1984",)"
           R"(ELLIPSOID["WGS 84",6378137,298.257223563]],CS[ellipsoidal,2],AXIS["latitude",north],)"
           R"(AXIS["longitude",east],ANGLEUNIT["degree",0.0174532925199433],ID["EPSG",4326]]],)"
           R"(ABRIDGEDTRANSFORMATION["a",METHOD["NTv2",ID["EPSG",9615]],)"
           R"(PARAMETERFILE["Latitude and longitude difference file",")" +
           grid + "\",ID[\"EPSG\",8656]]]]";
}

TEST_F(UntrustedDocuments, DescribeRastersAndNothingElse) {
    const Json good = document(links::displacement(3, some(bands, 5)), bands);
    const std::string plain = good["raster"];
    const auto with = [&](const std::string& inner) {
        return plain.substr(0, plain.rfind("</VRTDataset>")) + inner + "</VRTDataset>";
    };
    const std::string source =
        "<SimpleSource><SourceFilename>/vsicurl/http://127.0.0.1:9/x</SourceFilename></SimpleSource>";
    for (const std::string& text :
         {m_folder + "/s.dat",
          std::string("/vsicurl/http://127.0.0.1:9/x.vrt"),
          std::string("vrt://s.dat"),
          " " + plain,
          plain + plain,
          std::string("<VRTDataset"),
          std::string("<GDAL_WMS/>"),
          with("<MaskBand/>"),
          with("<OverviewList>2</OverviewList>"),
          with("<VRTRasterBand band=\"6\">" + source + "</VRTRasterBand>"),
          with("<VRTRasterBand band=\"6\" subClass=\"VRTDerivedRasterBand\"/>"),
          with("<Metadata domain=\"GEOLOCATION\"><MDI "
               "key=\"X_DATASET\">/vsicurl/http://127.0.0.1:9/x</MDI></Metadata>"),
          with(R"(<Metadata domain="OVERVIEWS"><MDI key="OVERVIEW_FILE">s.dat</MDI></Metadata>)"),
          with("<SRS>+init=" + m_folder + "/s.dat:1</SRS>"),
          with("<SRS>+proj=longlat +nadgrids=" + m_folder + "/s.dat</SRS>"),
          with(R"(<GCPList Projection="+proj=utm +zone=30 +geoidgrids=@/dev/zero"/>)"),
          with("<SRS>" + bound_crs("/dev/zero") + "</SRS>"),
          with(R"(<SRS>GEOGCS["x",EXTENSION["PROJ4_GRIDS","/dev/zero"]]</SRS>)"),
          with(R"(<SRS>{"type": "BoundCRS", "parameters": [{"name": "g", "value": "/dev/zero"}]}</SRS>)"),
          with("<SRS>http://127.0.0.1:9/crs</SRS>")}) {
        Json other = good;
        other["raster"] = text;
        EXPECT_NE(refusal(other.dump()), "") << text.substr(0, 100);
    }
    Json other = good;
    other["raster"] = with("<Metadata domain=\"any\"><MDI key=\"a\">b</MDI></Metadata>");
    EXPECT_EQ(refusal(other.dump()), "");
    other["raster"] = with("<SRS>+proj=merc +a=6378137 +b=6378137 +nadgrids=@null</SRS>");
    EXPECT_EQ(refusal(other.dump()), "");
}

/// A port of this machine that records requests.
class Listener {
  public:
    Listener() : m_socket(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t bytes = sizeof at;
        if (bind(m_socket, reinterpret_cast<sockaddr*>(&at), bytes) != 0 || listen(m_socket, 9) != 0 ||
            getsockname(m_socket, reinterpret_cast<sockaddr*>(&at), &bytes) != 0)
            throw Error("cannot listen");
        m_port = ntohs(at.sin_port);
    }
    ~Listener() { close(m_socket); }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    std::string file() const { return "/vsicurl/http://127.0.0.1:" + std::to_string(m_port) + "/a.tif"; }
    bool was_asked() const { return accept(m_socket, nullptr, nullptr) >= 0; }

  private:
    int m_socket, m_port = 0;
};

/// Metadata of a source in a side file, in the text of a VRT or in the source's own format is checked as the
/// document is.
TEST_F(UntrustedDocuments, AreVettedWithWhatTheirSourcesName) {
    const Listener server;
    ASSERT_EQ(mkfifo((m_folder + "/pipe").c_str(), 0600), 0);
    const auto item = [](const char* domain, const char* key, const std::string& value) {
        return "<Metadata domain=\"" + std::string(domain) + "\"><MDI key=\"" + key + "\">" + value +
               "</MDI></Metadata>";
    };
    const std::string pipe = m_folder + "/pipe", grid = "/nowhere/grid",
                      shift = "coordinate reference system that names the file";
    const std::pair<std::string, std::string> contents[] = {
        {item("OVERVIEWS", "OVERVIEW_FILE", server.file()), "not a file on this machine"},
        {item("OVERVIEWS", "OVERVIEW_FILE", pipe), "pipe or a device"},
        {item("OVERVIEWS", "OVERVIEW_FILE", ":::BASE:::pipe"), "pipe or a device"},
        {item("GEOLOCATION", "X_DATASET", server.file()), "not a file on this machine"},
        {item("GEOLOCATION", "Y_DATASET", pipe), "pipe or a device"},
        {"<SRS>+init=" + grid + ":1</SRS>", shift},
        {"<SRS>+proj=longlat +nadgrids=" + grid + "</SRS>", shift},
        {"<SRS>" + bound_crs(grid) + "</SRS>", shift},
        {"<SRS>http" + server.file().substr(13) + "</SRS>", "not a file on this machine"},
        {"<GCPList Projection=\"+proj=utm +zone=30 +geoidgrids=" + grid + "\"/>", shift}};
    const Json good = document(links::displacement(3, some(bands, 5)), bands);
    const std::string side = m_folder + "/s.dat.aux.xml", vrt = m_folder + "/s.vrt";
    const auto vrt_text = [&](const std::string& inner) {
        std::string text = description(bands, "Float32");
        for (int b = bands; b >= 1; --b) {
            const std::string band = "band=\"" + std::to_string(b) + "\"";
            text.replace(text.find(band + "/>"), band.size() + 2,
                         band +
                             "><SimpleSource><SourceFilename relativeToVRT=\"1\">s.dat</SourceFilename>"
                             "<SourceBand>" +
                             std::to_string(b) + "</SourceBand></SimpleSource></VRTRasterBand>");
        }
        return text.insert(text.find('>') + 1, inner);
    };
    const auto with_vrt = [&](const std::string& inner) {
        std::ofstream(vrt) << vrt_text(inner);
        Json other = good;
        other["source"]["path"] = vrt;
        return other;
    };
    for (const auto& [content, message] : contents) {
        std::ofstream(side) << "<PAMDataset>" << content << "</PAMDataset>";
        EXPECT_NE(refusal(good.dump()).find(message), std::string::npos) << content;
        fs::remove(side);
        ASSERT_EQ(refusal(good.dump()), "");
        EXPECT_NE(refusal(with_vrt(content).dump()).find(message), std::string::npos) << content;
    }
    std::ofstream(side) << "<PAMDataset>" << item("OVERVIEWS", "OVERVIEW_FILE", m_folder + "/s.dat")
                        << item("any", "a", "/dev/zero") << "<SRS>EPSG:4326</SRS></PAMDataset>";
    EXPECT_EQ(refusal(good.dump()), "");
    fs::remove(side);
    EXPECT_EQ(refusal(with_vrt("<SRS>EPSG:4326</SRS>").dump()), "");
    EXPECT_FALSE(server.was_asked());
}

TEST_F(UntrustedDocuments, AreVettedWithWhatFormatsKeep) {
    const Listener server;
    const std::string tiff = m_folder + "/t.tif";
    const auto made = [&](const char* domain, const char* key, const std::string& file) {
        fs::remove(tiff);
        GDALDataset* const t = GetGDALDriverManager()->GetDriverByName("GTiff")->Create(
            tiff.c_str(), samples, lines, bands, GDT_Float32, nullptr);
        if (!file.empty()) t->SetMetadataItem(key, file.c_str(), domain);
        t->GetRasterBand(1)->Fill(3);
        GDALClose(t);
        Json d = document(links::displacement(3, some(bands, 5)), bands);
        d["source"]["path"] = tiff;
        return d.dump();
    };
    EXPECT_EQ(refusal(made("", "", "")), "");
    for (const auto& [domain, key] :
         {std::pair("OVERVIEWS", "OVERVIEW_FILE"), {"GEOLOCATION", "X_DATASET"}}) {
        EXPECT_NE(refusal(made(domain, key, server.file())).find("not a file on this machine"),
                  std::string::npos)
            << key;
        EXPECT_EQ(refusal(made(domain, key, m_folder + "/s.dat")), "") << key;
    }
    EXPECT_FALSE(server.was_asked());
    const auto with_srs = [](const std::string& text) {
        const raster::GdalErrors quiet; // PROJ opens the file
        GDALDataset* const memory =
            GetGDALDriverManager()->GetDriverByName("MEM")->Create("", 3, 2, 1, GDT_Byte, nullptr);
        OGRSpatialReference srs;
        srs.SetFromUserInput(text.c_str());
        memory->SetSpatialRef(&srs);
        std::string said;
        try {
            raster::check_dataset_names(*memory, "y.hsi");
        } catch (const Error& e) {
            said = e.what();
        }
        GDALClose(memory);
        return said;
    };
    const std::string grid = "/nowhere/grid";
    for (const std::string& srs : {bound_crs(grid), "+proj=longlat +nadgrids=" + grid,
                                   "+proj=utm +zone=30 +geoidgrids=" + grid + " +vunits=m"})
        EXPECT_NE(with_srs(srs).find("names the file '" + grid + "'"), std::string::npos) << srs;
    for (const char* const srs : {"EPSG:4326", "EPSG:32630", "EPSG:3857", "+proj=longlat +nadgrids=@null"})
        EXPECT_EQ(with_srs(srs), "") << srs;
}

/// PROJ opens the file in a definition when GDAL reads the definition, so texts next to a source are checked
/// first.
TEST_F(UntrustedDocuments, AreVettedWithTextsBesideTheirSources) {
    ASSERT_EQ(mkfifo((m_folder + "/pipe").c_str(), 0600), 0);
    const std::string good = document(links::displacement(3, some(bands, 5)), bands).dump();
    const std::string shift = R"(GEOGCS["x",DATUM["x",SPHEROID["a",6378137,298],EXTENSION["PROJ4_GRIDS",")" +
                              m_folder + R"(/pipe"]],PRIMEM["Greenwich",0],UNIT["degree",0.01745]])";
    const std::string header = read_text_file(m_folder + "/s.hdr", largest_file::model);
    const std::pair<std::string, std::string> texts[] = {
        {"s.prj", shift},
        {"s.hdr", header + "map info = {x, 1, 1, 0, 0, 1, 1}\ncoordinate system string = {" + shift + "}\n"}};
    for (const auto& [name, text] : texts) {
        std::ofstream(m_folder + "/" + name) << text;
        EXPECT_NE(refusal(good), "") << name;
        raster::OpenOptions options; // options of a tool
        options.path = m_folder + "/s.dat";
        EXPECT_THROW(raster::open_raster(options), Error) << name;
        fs::remove(m_folder + "/" + name);
    }
    std::ofstream(m_folder + "/s.hdr") << header;
}

bool is_taken(const std::string& text, const std::function<void(const std::string&)>& read) {
    try {
        read(text);
    } catch (const Error&) {
        return false;
    }
    return true;
}

/// Edits a text without a checksum. `free`: lists that may have any length.
void walk_plain(const std::string& kind, const Json& good, const std::set<std::string>& free,
                const std::function<void(const std::string&)>& read) {
    ASSERT_TRUE(is_taken(good.dump(), read)) << kind;
    Counts counts;
    each_edit(good, [&](const Edit& edit) {
        ++counts.edits;
        const bool taken = is_taken(edit.document.dump(), read);
        ++(taken ? counts.computed : counts.refused);
        const bool any = free.contains(edit.what.substr(0, edit.what.find(' ')));
        EXPECT_FALSE(taken && edit.length && !any) << kind << ": " << edit.what;
    });
    counts.print(kind);
}

/// Edits the text of a model or a file of statistics. `free`: lists that may have any length without a
/// checksum.
void walk_text(const std::string& kind, const std::string& text, const std::set<std::string>& free,
               const std::function<void(const std::string&)>& read) {
    const Json good = Json::parse(text);
    ASSERT_TRUE(good.contains("checksum")) << kind;
    EXPECT_TRUE(is_taken(good.dump(), read)) << kind << ", written anew by another program";
    Counts counts;
    each_edit(good, [&](const Edit& edit) {
        ++counts.edits;
        const bool taken = is_taken(edit.document.dump(), read);
        ++(taken ? counts.computed : counts.refused);
        const bool same = edit.what == "/scenes/0/mask removed"; // the mask was empty
        EXPECT_FALSE(taken && edit.document.contains("checksum") && !same) << kind << ": " << edit.what;
    });
    counts.print(kind);
    Json bare = good;
    bare.erase("checksum");
    if (is_taken(bare.dump(), read)) // statistics always have a checksum
        walk_plain(kind + " without checksum", bare, free, read);
}

/// A model of two scenes with sums from which its bins follow.
normalise::Model normalisation() {
    normalise::Model model;
    model.bands = {1, 2, 3};
    model.created_by = "a test";
    model.binning.bins = 2;
    model.binning.min_pixels = 10;
    const auto cells = static_cast<size_t>(model.method.cells());
    for (const char* const name : {"a.img", "b.img"}) {
        normalise::SceneRecord scene;
        scene.name = name;
        scene.grid = {19, 7, std::array<double, 6>{500, 20, 0, 900, 0, -20}};
        scene.terrain = {200, some(3), some(3)};
        scene.sums.count.resize(cells);
        scene.sums.sums.resize(cells);
        for (const size_t cell : {20, 50, 70}) {
            auto& sums = scene.sums.sums[cell];
            sums.assign(normalise::CellSums::width(3), 0);
            for (int k = 0; k < 30; ++k) { // pixels with these kernels and values
                const double volume = .01 * (k % 7), geometric = .02 * (k % 5),
                             value = .2 + volume + geometric;
                const double terms[] = {
                    volume, geometric, volume * volume, volume * geometric, geometric * geometric, 40};
                for (size_t i = 0; i < sums.size(); ++i) {
                    const double of_band[] = {value, value * volume, value * geometric, value * value};
                    sums[i] += i < 6 ? terms[i] : of_band[(i - 6) % 4];
                }
            }
            scene.sums.count[cell] = 30;
            scene.pixels += 30;
        }
        model.add(scene);
    }
    model.fit();
    return model;
}

/// Reads a normalisation model and uses it as its tool does.
void use_normalisation(const std::string& text) {
    normalise::Model model = normalise::from_json(text, "m");
    const normalise::Model same = normalise::from_json(normalise::to_json(model), "m");
    for (const auto& scene : model.scenes)
        static_cast<void>(scene.level());
    normalise::Model other = model;
    for (auto& scene : other.scenes)
        scene.name += " 2";
    model.add(other, "m");
    model.fit();
    model.remove(other, "m");
    normalise::SceneTask task;
    task.shape = {samples, lines, static_cast<int>(model.bands.size())};
    static_cast<void>(normalise::make_correction(task, model.method, {}, model.bins, model.solar_zenith));
}

TEST(UntrustedModels, AreTakenAsTheyWereWritten) {
    walk_text("SVM model", svm::to_json(svm::from_json(corpus("svm_model/small"), "m")), {},
              [](const std::string& text) { svm::from_json(text, "m"); });
    walk_text("MLR model", sahic::to_json(sahic::from_json(corpus("mlr_model/small"), "m")), {},
              [](const std::string& text) { sahic::from_json(text, "m"); });
    walk_text("PCA model", pca::to_json(pca::from_json(corpus("pca_model/small"), "m")),
              {"/wavelengths_nm"}, // empty where they are unknown
              [](const std::string& text) { pca::from_json(text, "m"); });
    walk_text("MNF model", mnf::to_json(mnf::from_json(corpus("mnf_model/small"), "m")), {"/wavelengths_nm"},
              [](const std::string& text) { mnf::from_json(text, "m"); });
    walk_text("statistics", corpus("statistics/counts"), {},
              [](const std::string& text) { statistics::from_json(text, "m"); });
    walk_text("normalisation", normalise::to_json(normalisation()),
              {"/scenes", "/scenes/0/sums", "/scenes/1/sums", "/brdf/bins"}, use_normalisation);
}

TEST(UntrustedModels, AreTakenOfHyToolsWithTheListsOfTheirBandsAndBins) {
    const auto read = [](const std::string& text) {
        normalise::Model model;
        model.bands = {1, 2};
        normalise::add_hytools(text, "m", model.bands, 2, model);
        normalise::SceneTask task;
        task.shape = {samples, lines, 2};
        static_cast<void>(normalise::make_correction(task, model.method, model.hytools->terrain, model.bins,
                                                     model.solar_zenith, &*model.hytools));
    };
    const std::string mask =
        R"("apply_mask": [["ndi", {"band_1": 850, "band_2": 660, "min": 0.1, "max": 1}],
                          ["ancillary", {"name": "slope", "min": 0.1, "max": "inf"}]],)";
    const std::set<std::string> free{"/apply_mask"};
    walk_plain("HyTools, topography",
               Json::parse("{" + mask + R"("type": "scs+c", "coeffs": {"0": 0.5, "1": 0.6}})"), free, read);
    const std::string kernels =
        R"("volume": "ross_thick", "geometric": "li_dense_r", "b/r": 2.5, "h/b": 2, "solar_zn_norm_radians": 0.7,)";
    walk_plain("HyTools, universal",
               Json::parse("{" + mask + kernels +
                           R"("type": "universal", "coeffs": {"0": [1, 2, 3], "1": [4, 5, 6]}})"),
               free, read);
    Json flex =
        Json::parse("{" + mask + kernels +
                    R"("type": "flex", "interp_kind": "linear", "bins": {"1": [0.1, 0.5], "2": [0.5, 1]},
                               "coeffs": {"0": [[1, 2, 3], [4, 5, 6]], "1": [[1, 2, 3], [4, 5, 6]]}})");
    walk_plain("HyTools, flex", flex, free, read);
    for (int k = 1; k <= 1001; ++k)
        flex["bins"][std::to_string(k)] = {k, k + 1};
    flex["coeffs"] = Json::object(); // memory for each band and bin, from a text of a few bytes
    EXPECT_FALSE(is_taken(flex.dump(), read));
}

TEST(UntrustedModels, OfRulesAreUnderstoodOrRefused) {
    const Json rules = Json::parse(R"({"format": "gdal_hsi_rules", "version": 1,
        "groups": [{"name": "one"}, {"name": "two", "where": ["a"], "unless": ["b"]}],
        "rules": [{"name": "a", "group": "one", "features": [{"windows": [400, 500, 700, 800]}],
                   "limits": {"fit": [0.1, null]}},
                  {"name": "b", "group": "one", "features": [{"windows": [400, 400, 700, 800]}]},
                  {"name": "c", "group": "two", "features": [{"windows": [400, 500, 700, 800]}]}]})");
    walk_plain("rules", rules,
               {"/groups", "/groups/1/where", "/groups/1/unless", "/rules", "/rules/0/features",
                "/rules/1/features", "/rules/2/features"},
               [](const std::string& text) {
                   const auto file = identify::read_rules(text, "m");
                   static_cast<void>(identify::groups_of_rules(file));
                   identify::plan_rules(
                       file, {}, {{400, 500, 600, 700, 800}, {}, {}, 1},
                       {{"a", {5, 4, 3, 4, 5}}, {"b", {5, 3, 4, 5, 6}}, {"c", {1, 2, 1, 2, 1}}});
               });
    walk_plain("colours", Json::parse(R"({"a": [1, 2, 3], "b": [4, 5, 6]})"), {},
               [](const std::string& text) { identify::read_colours(text, "m"); });
}

/// Anyone can compute a checksum, so the contents are also checked.
TEST(UntrustedModels, OfStatisticsAreCheckedBehindTheirChecksum) {
    using statistics::Statistics;
    constexpr int64_t huge = int64_t{1} << 56;
    struct Case {
        const char* what;
        std::function<void(Statistics&)> change;
        bool taken = false;
    };
    int taken = 0;
    const Case cases[] = {
        {"nothing", [](Statistics&) {}, true},
        {"pairs", [](Statistics& s) { s.sums.pairs = 21; }},
        {"no pairs", [](Statistics& s) { s.sums.pairs = 0; }, true},
        {"finite above all", [](Statistics& s) { s.sums.finite[1] = 21; }},
        {"finite below valid", [](Statistics& s) { s.sums.finite[0] = 19; }},
        {"valid", [](Statistics& s) { s.sums.valid = 19; }},
        {"no valid pixel", [](Statistics& s) { s.sums.valid = s.scenes[0].valid = s.sums.pairs = 0; }},
        {"huge counts",
         [](Statistics& s) { s.sums.valid = s.scenes[0].valid = s.sums.finite[0] = s.sums.finite[1] = huge; },
         true},
        {"counts whose sum has no 64 bits",
         [](Statistics& s) {
             for (int k = 0; k < 300; ++k) {
                 s.scenes.push_back(s.scenes[0]);
                 s.scenes.back().valid = s.scenes.back().invalid = huge;
             }
         }},
        {"sums near the end of doubles",
         [](Statistics& s) {
             const std::vector<double> terms(s.sums.product.size(), 1.7e308);
             s.sums.sum.add(0, terms.data(), s.sums.sum.size());
             s.sums.product.add(0, terms.data(), terms.size());
             s.sums.difference.add(0, terms.data(), terms.size());
         },
         true},
        {"negative squares",
         [](Statistics& s) {
             const std::vector<double> terms(s.sums.product.size(), -1e30);
             s.sums.product.add(0, terms.data(), terms.size());
             s.sums.difference.add(0, terms.data(), terms.size());
         },
         true},
        {"extremes that cross", [](Statistics& s) { s.scenes[0].extremes.low[0] = 1e30F; }, true},
    };
    for (const auto& [what, change, expected] : cases) {
        Statistics changed = statistics::from_json(corpus("statistics/counts"), "m");
        change(changed);
        const std::string text = statistics::to_json(changed, "a test");
        const bool was = is_taken(text, [](const std::string& written) {
            Statistics s = statistics::from_json(written, "m");
            s.result();
            static_cast<void>(s.extremes());
            s.remove(statistics::from_json(written, "m"), "m");
            s.result();
        });
        EXPECT_EQ(was, expected) << what;
        taken += was;
    }
    std::printf("signed statistics: %zu edits, %d taken\n", std::size(cases), taken);
}

TEST(UntrustedModels, SayWhatToDoAfterAnEdit) {
    Json model = Json::parse(svm::to_json(svm::from_json(corpus("svm_model/small"), "m")));
    model["svm"]["gamma"] = 2;
    try {
        svm::from_json(model.dump(), "m.json");
        ADD_FAILURE() << "it was taken";
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "'m.json' is damaged: its checksum does not match");
        EXPECT_NE(e.advice().find("remove its member 'checksum'"), std::string::npos);
    }
    Json damaged = model;
    damaged["chexksum"] = damaged["checksum"];
    damaged.erase("checksum");
    EXPECT_THROW(svm::from_json(damaged.dump(), "m.json"), Error);
    model.erase("checksum");
    EXPECT_EQ(svm::from_json(model.dump(), "m.json").gamma, 2);
}

} // namespace
} // namespace hsi
