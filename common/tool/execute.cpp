// SPDX-License-Identifier: MIT
#include "tool/execute.h"

#include "core/cuda_module.h"
#include "core/digest.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/forced_unwind.h"
#include "core/process_limits.h"
#include "core/process_owner.h"
#include "core/system.h"
#include "core/text.h"
#include "core/text_file.h"
#include "math/simd_target.h"
#include "parallel/ranks.h"
#include "raster/drivers.h"
#include "raster/gdal_errors.h"
#include "raster/scene_document.h"
#include "raster/side_files.h"
#include "raster/text_output.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/run_impl.h"
#include "tool/words.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace hsi::tool {

namespace {

/// Files that arguments name but for the source, before anything can be written. `dst`: it is one of them.
void register_outputs(const Call& call, raster::RunFiles& files, bool dst) {
    const CommonOptions& options = call.options();
    const auto each = [&](Role role, const auto& visit) {
        for (const Argument& argument : call.arguments())
            if (argument.role == role && argument.count > 0 && !argument.words.front().empty())
                visit(argument.spelling(), argument.words.front());
    };
    each(Role::input, [&](const std::string& role, const std::string& path) {
        files.reads(role, path, raster::files_read_with(path));
    });
    if (dst && call.has_destination() && options.destination.path.rfind("/vsistdout", 0) != 0)
        files.writes("dst", options.destination.path, {});
    each(Role::output,
         [&](const std::string& role, const std::string& path) { files.writes(role, path, {}); });
}

/// The same with the source, a report of failure among what is written.
void register_files(const Call& call, raster::RunFiles& files) {
    const CommonOptions& options = call.options();
    register_outputs(call, files, true);
    if (!call.has_source()) return;
    // Run::open_source() tells all of its files, and opens it once; a report that would replace a file cannot
    // wait for that.
    const std::string& source = options.source.path;
    const bool all = !options.report.empty() && ::access(options.report.c_str(), F_OK) == 0;
    files.reads("src", source, all ? raster::files_read_with(source) : std::vector<std::string>());
}

/// The tool's own arguments as they were given, for the report.
Json own_options(const Call& call) {
    Json own = Json::object();
    for (const Argument& argument : call.arguments()) {
        if (argument.shared) continue;
        auto& value = own[argument.name];
        if (argument.type == Type::flag)
            value = argument.count > 0;
        else if (argument.words.size() > 1)
            value = argument.words;
        else if (argument.words.size() == 1)
            value = argument.words.front();
        else if (!argument.default_value.empty())
            value = argument.default_value;
    }
    return own;
}

// -if-needed
// ----------------------------------------------------------------------------------------------------------

/// What a run with -if-needed leaves beside its first output: what it was told, and how the files that it
/// read and wrote were. Results depend on no more: not on threads, tiles, memory or ranks.
class MadeRecord {
  public:
    /// \throws UsageError when no output is a file, Error when another file has the record's name.
    explicit MadeRecord(const Call& call) {
        const CommonOptions& options = call.options();
        m_path = call.first_output();
        if (m_path.empty()) throw UsageError("-if-needed means nothing without an output", "Leave it out.");
        if (!is_local(m_path) || m_path.compare(0, 5, "/dev/") == 0)
            throw UsageError("-if-needed: " + m_path + " is no file that is there later", "Leave it out.");
        m_path += ".made";
        m_report = options.report;
        m_told = {{"tool", call.definition().executable()}, {"version", project_version()}};
        auto& given = m_told["options"] = Json::object();
        for (const Argument& argument : call.arguments())
            if (argument.count > 0 && !is_free(argument.name)) // no word itself: some are passwords
                given[argument.name] = digest_text(joined(argument.words, "\n"));
        m_told["settings"] = digest_text(joined(raster::settings_of_results(), "\n"));
        read();
    }

    /// The outputs are there, as a run that was told the same has made them of the same files.
    bool holds() const {
        return !m_before.is_null() && m_before["told"] == m_told && is_as(m_before["read"]) &&
               is_as(m_before["made"]);
    }
    /// Before the outputs get their names: how the files that were read are. One that changes until then ends
    /// the run.
    void look_at_inputs(const raster::RunFiles& files) {
        for (const std::string& file : files.read()) {
            if (is_overview(file)) continue;
            Json& state = m_inputs[file];
            state = is_stream(file) ? Json::array() : state_of(file, true);
            if (!state.is_object()) continue; // it is not there
            for (const std::string& other : raster::files_that_may_come(file))
                if (!m_inputs.contains(other) && !is_there(other)) m_inputs[other] = nullptr;
        }
    }
    /// Once they have them. \throws Error.
    void write(const raster::RunFiles& files) const {
        Json made = Json::object(), read = m_inputs;
        bool computed = false;
        for (const auto& [role, output] : files.written()) {
            if (output == m_report) continue;
            made[output] = state_of(output);
            computed = computed || raster::is_scene_document(output);
            for (const auto& file : raster::files_as_they_are(output))
                made[file.path] = state_of(file.path);
            if (!is_local(output)) continue;
            const std::string side = output + ".aux.xml", mask = output + ".msk";
            made[side] = {{"there", is_there(side)}, {"tells", digest_text(raster::told_by_side_file(side))}};
            if (!made.contains(mask)) made[mask] = state_of(mask);
        }
        for (const auto& [file, state] : made.items())
            read.erase(file); // y.prj of the output y.shp, beside the input y.tif
        if (!computed)
            for (auto& state : read)
                if (state.is_object() && state.contains("holds")) state.erase("modified");
        const Json record{
            {"format", format}, {"told", m_told}, {"read", std::move(read)}, {"made", std::move(made)}};
        raster::write_text_output({"-if-needed", m_path, true, nullptr},
                                  record.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
    }

  private:
    static constexpr const char* format = "gdal_hsi_made";
    static constexpr uint64_t small = uint64_t{16} << 20; ///< files whose contents are compared

    /// Changes nothing in results.
    static bool is_free(const std::string& name) {
        for (const char* const other : {"overwrite", "if-needed", "report", "report-append", "q", "dry-run",
                                        "threads", "memory", "device-memory", "tile", "ranks"})
            if (name == other) return true;
        return false;
    }
    /// Pyramids come and go, and no tool reads them.
    static bool is_overview(const std::string& file) {
        return file.size() > 4 && file.compare(file.size() - 4, 4, ".ovr") == 0;
    }
    static bool is_there(const std::string& file) { return ::access(file.c_str(), F_OK) == 0; }
    /// A pipe or a device, of which nobody knows what will come.
    static bool is_stream(const std::string& file) {
        std::error_code error;
        const auto status = std::filesystem::status(file, error);
        return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
               !std::filesystem::is_directory(status);
    }
    /// What a power failure leaves of a record is as none; anything else is somebody's.
    void read() {
        if (!is_there(m_path)) return;
        std::string text = "?"; // another file: a FIFO, or one that is too large
        try {
            if (!is_stream(m_path)) text = read_text_file(m_path, largest_file::model, FileHolds::bytes);
        } catch (const Error&) {
        }
        m_before = Json::parse(text, nullptr, false);
        if (m_before.is_object() && m_before.value("format", Json()) == Json(format) &&
            m_before.value("read", Json()).is_object() && m_before.value("made", Json()).is_object() &&
            m_before.contains("told"))
            return;
        m_before = nullptr;
        const std::string mark = std::string("{\n \"format\": \"") + format + '"'; // as write() begins
        const bool ours = text.find_first_not_of('\0') == std::string::npos ||
                          text.compare(0, mark.size(), mark, 0, text.size()) == 0;
        if (!ours)
            throw Error("'" + m_path + "' is there and is no record of -if-needed",
                        "Delete it, or name another output.");
    }

    /// Null: not there. Small files by what they hold, others by size and time; all by time, too, where
    /// `timed`, as a scene that computes compares its sources.
    static Json state_of(const std::string& file, bool timed = false) {
        if (!is_local(file)) {
            Json all = Json::array();
            for (const auto& one : raster::files_as_they_are(file))
                all.push_back({one.path, one.bytes, one.modified});
            return all;
        }
        std::error_code error;
        const auto status = std::filesystem::status(file, error);
        if (error || !std::filesystem::exists(status)) return nullptr;
        if (std::filesystem::is_directory(status)) return state_of_folder(file);
        Json state{{"bytes", 0}};
        if (!std::filesystem::is_regular_file(status)) return state;
        const uint64_t bytes = std::filesystem::file_size(file, error);
        state["bytes"] = bytes;
        if (timed || bytes > small || error) state["modified"] = time_of(file);
        if (bytes <= small && !error)
            state["holds"] = digest_text(read_text_file(file, small, FileHolds::bytes));
        return state;
    }
    static Json state_of_folder(const std::string& folder) {
        std::vector<std::string> all;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
            if (entry.is_regular_file())
                all.push_back(entry.path().string() + " " + std::to_string(entry.file_size()) + " " +
                              time_of(entry.path().string()));
        std::sort(all.begin(), all.end());
        return {{"files", all.size()}, {"holds", digest_text(joined(all, "\n"))}};
    }
    static std::string time_of(const std::string& file) {
        std::error_code error;
        const auto time = std::filesystem::last_write_time(file, error);
        return error ? ""
                     : std::to_string(
                           static_cast<int64_t>(time.time_since_epoch().count())); // libc++: 128 bits
    }
    static std::string digest_text(const std::string& bytes) { return std::to_string(digest_of(bytes)); }
    /// A file of which no time is known, as on some servers, or a pipe is never as it was.
    static bool is_known(const Json& state) {
        return !state.is_array() ||
               (!state.empty() && std::none_of(state.begin(), state.end(),
                                               [](const Json& f) { return f.size() != 3 || f[2] == "0"; }));
    }
    static bool is_as(const Json& files) {
        for (const auto& [file, state] : files.items())
            if (state.is_object() && state.contains("tells")
                    ? digest_text(raster::told_by_side_file(file)) != state["tells"] ||
                          (state["there"] == Json(true) && !is_there(file))
                    : !is_known(state) || state_of(file, state.contains("modified")) != state)
                return false;
        return true;
    }

    std::string m_path, m_report;
    Json m_told, m_before, m_inputs = Json::object();
};

/// Whether this rank has to do anything. What ranks decide by is made the same for all of them.
bool take_part(Call& call) {
    parallel::Ranks& ranks = parallel::ranks();
    if (!ranks.several()) return true;
    CommonOptions& options = call.options();
    if (call.definition().one_process || options.dry_run || options.source.follow) {
        if (!ranks.root()) return false;
        ranks.work_alone();
        return true;
    }
    options.memory = ranks.least("memory", options.memory);
    options.device_memory = ranks.least("device memory", options.device_memory);
    options.threads = static_cast<int>(ranks.least("threads", static_cast<uint64_t>(options.threads)));
    take_own_device(options.device);
    return true;
}

struct HostEnding {
    Host* host = nullptr;
    ~HostEnding() {
        if (host != nullptr) host->end();
    }
};

} // namespace

void Host::give_words(Call& call, const std::vector<std::string>&) {
    throw Error(std::string("internal: this host understands no words of a step (") + call.definition().name +
                ")");
}

namespace {

/// The host of a run, as one of its steps has it.
class StepHost final : public Host {
  public:
    StepHost(RunAccess::State& run, std::string title, double share)
        : m_run(run), m_title(std::move(title)), m_from(run.share_done),
          m_share(std::min(share, 1 - m_from)) {
        run.share_done += m_share;
    }
    void begin(const CommonOptions&, Warn) override {}
    void progress(double done) override { m_run.progress(m_from + m_share * done); }
    void note(const std::string& text) override { m_run.host.note(m_title + ": " + text); }
    void warn(const std::string& text) override { m_run.warn(m_title + ": " + text); }
    void print(const std::string& text) override { m_run.host.print(text); }
    void check_printed() override { m_run.host.check_printed(); }
    CancelFlag& cancel() override { return m_run.host.cancel(); }
    void limit_cache(uint64_t bytes) override { m_run.host.limit_cache(bytes); }
    std::vector<std::string> library_failures() const override { return {}; } // those of the run
    void committed() override {}
    void end() override {}

  private:
    RunAccess::State& m_run;
    const std::string m_title;
    const double m_from, m_share; ///< of the run's bar
};

} // namespace

namespace {

/// The body of the tool; a dry run ends where its plan is complete.
void do_work(const Call& call, Run& run) {
    try {
        call.work()(run);
    } catch (const PlanIsComplete&) {
    }
}

} // namespace

void give_step_words(const Run& run, Call& call, const std::vector<std::string>& words) {
    RunAccess::state(const_cast<Run&>(run)).host.give_words(call, words);
}

void run_step(Run& run, Call& call, const std::string& title, const std::string& command, double share) {
    RunAccess::State& whole = RunAccess::state(run);
    StepHost host(whole, title, share);
    CommonOptions& options = call.options();
    raster::OutputOptions& to = options.destination;
    to.history = command;
    to.stac.version = project_version();
    to.memory = quarter(options.memory);
    to.threads = options.threads;
    to.cancel = &host.cancel();
    const bool own_name = !to.document && !to.at_once;
    if (own_name) to.run = whole.files;

    auto made = std::make_unique<RunAccess::State>(host, call.definition().executable(), command);
    RunAccess::State& state = *made;
    state.files = whole.files;
    state.agreed = whole.agreed;
    state.overwrite = call.given("overwrite");
    state.options = options;
    state.own_options = own_options(call);
    const auto step = RunAccess::make(std::move(made));
    try {
        state.start();
        register_outputs(call, *whole.files, own_name);
        call.run_checks();
        do_work(call, *step);
        state.finish();
    } catch (const UsageError& e) {
        throw UsageError(title + ": " + e.what(), e.advice());
    } catch (const Cancelled&) {
        throw;
    } catch (const Error& e) {
        throw Error(title + ": " + e.what(), e.advice());
    }
    run.report()["steps"].push_back(state.record(nullptr));
}

const char* project_version() { return HSI_PROJECT_VERSION; }

Outcome current_failure(bool cancelled) {
    Outcome failure;
    try {
        throw;
    } catch (const UsageError& error) {
        failure = {2, error.what(), error.advice()};
    } catch (const Error& error) {
        failure = {1, error.what(), error.advice()};
    } catch (const std::bad_alloc&) {
        failure = {1, "out of memory", "Give a smaller -memory, or fewer -threads."};
    } catch (const std::exception& error) {
        failure = {1, error.what(), ""};
    } catch (ForcedUnwind&) {
        throw;
    } catch (...) {
        failure = {1, "an unknown error", ""};
    }
    // Once the user has had enough, whatever error follows is its echo.
    if (cancelled && failure.code == 1) failure = {1, Cancelled().what(), Cancelled().advice()};
    failure.what = one_line(raster::with_final_names(failure.what));
    return failure;
}

namespace {

/// The outputs are there, whatever becomes of the record.
void write_record(Run& run, const MadeRecord& record, const raster::RunFiles& files) {
    try {
        record.write(files);
    } catch (const std::exception& error) {
        run.warn("-if-needed: " + std::string(error.what()) + ": the next run makes the outputs anew");
    }
}

} // namespace

Outcome execute(Call& call, Host& host, const std::string& command, const std::vector<std::string>& read) {
    std::unique_ptr<Run> run;
    HostEnding ending; // before the run, which the host may still speak to
    bool report_possible = false;
    try {
        if (call.given("if-needed") && !call.given("overwrite") && !call.excluded("overwrite"))
            call.give("overwrite", {});
        call.finish();
        CommonOptions& options = call.options();
        if (!take_part(call)) return {};
        const auto files = std::make_shared<raster::RunFiles>();
        options.destination.history = command;
        options.destination.stac.version = project_version();
        options.destination.memory = quarter(options.memory);
        options.destination.threads = options.threads;
        options.destination.run = files;
        options.destination.cancel = options.source.cancel = &host.cancel();

        auto made = std::make_unique<RunAccess::State>(host, call.definition().executable(), command);
        RunAccess::State& state = *made;
        state.files = files;
        state.overwrite = call.given("overwrite");
        state.options = options;
        state.own_options = own_options(call);
        run = RunAccess::make(std::move(made));
        files->set_listeners([&run](const std::string& text) { run->warn(text); },
                             [&run](const std::string& text) { run->note(text); });
        host.begin(options, [&state](const std::string& text) { state.warn(text); });
        ending.host = &host;
        state.start();
        for (const std::string& file : read)
            files->reads("--optfile", file, {});
        register_files(call, *files);
        state.check_report();
        report_possible = true;
        state.agree_on_files();
        call.run_checks();
        std::optional<MadeRecord> made_record;
        if (options.if_needed) {
            made_record.emplace(call);
            if (!parallel::ranks().any("a need", !made_record->holds())) {
                run->note("Nothing to do: the outputs are those that this command has made of these inputs");
                run->report()["if_needed"] = "nothing to do";
                if (parallel::ranks().root()) state.commit();
                return {};
            }
        }
        if (parallel::ranks().job_size() > 1 && (call.definition().one_process || options.source.follow))
            run->note("One process is enough for " + run->tool() + (options.source.follow ? " -follow" : "") +
                      ": rank 0 works, the others wait.");

        if (process_is_ours() && parallel::ranks().job_size() == 1 &&
            options.device.kind != DeviceChoice::Kind::cpu)
            hide_other_cuda_devices(options.device);
        const CudaStart start(options.device);

        raster::register_drivers();
        do_work(call, *run);
        state.outputs_are_good = false; // what fails from here on is not what the body foresaw
        Outcome done;
        done.report = state.report;
        state.finish();
        state.agree_on_files();
        // The body went on after these: they are not the end of the work, but nothing may be lost silently.
        for (const std::string& text : host.library_failures())
            run->warn("GDAL: " + one_line(text));
        if (!parallel::ranks().root()) return done;
        parallel::ranks().await_others();
        if (made_record) made_record->look_at_inputs(*files);
        state.commit();
        host.committed();
        if (made_record && !options.dry_run) write_record(*run, *made_record, *files);
        return done;
    } catch (ForcedUnwind&) {
        throw;
    } catch (...) {
        Outcome failure = current_failure(host.cancel().requested());
        if (run) {
            failure.report = RunAccess::state(*run).report;
            RunAccess::state(*run).warn_of_overflow(false); // perhaps the reason
        }
        if (report_possible && !run->files()->clashes("-report", call.options().report)) {
            try {
                RunAccess::state(*run).write_failure_report(failure);
            } catch (const std::exception& error) {
                failure.advice += (failure.advice.empty() ? "" : "\n") + std::string(error.what());
            }
        }
        // What others have seen growing goes now, however this process ends.
        call.options().destination.run.reset();
        if (ending.host != nullptr) std::exchange(ending.host, nullptr)->end();
        run.reset();
        return failure;
    }
}

namespace {

/// The instruction sets that compute alike: docs/architecture.md.
std::string arithmetic() {
    const std::string name = math::simd_target();
    return name.find("AVX") != std::string::npos ? "with FMA" : "without FMA";
}

/// Ranks of one node share its memory; its processors, too, unless each was given its own.
void divide_node(parallel::Ranks& ranks) {
    const std::string here = ranks.host(ranks.rank());
    const std::string mine = system::processor_set();
    const auto sets = ranks.all("processors", mine);
    int sharing = 0;
    for (int r = 0; r < ranks.size(); ++r) {
        const std::string& other = sets[static_cast<size_t>(r)];
        if (ranks.host(r) != here) continue;
        bool overlap = false;
        for (size_t i = 0; i < std::min(mine.size(), other.size()); ++i)
            overlap = overlap || (mine[i] == '1' && other[i] == '1');
        sharing += overlap ? 1 : 0;
    }
    share_machine(ranks.local_size(), std::max(1, sharing));
}

} // namespace

void JoinedJob::join(CancelFlag& cancel, const std::string& command) {
    m_ranks = parallel::join_ranks(cancel);
    if (!m_ranks) return;
    m_job.emplace(*m_ranks);
    parallel::Ranks& ranks = *m_ranks;
    ranks.meet();
    ranks.agree("version", project_version(), "runs another version", "Install one version on all nodes.");
    ranks.agree(
        "command", command, "was started with other arguments",
        "Start all ranks with the same command, or set HSI_MPI=NO where each process is to do a run of "
        "its own.");
    // HSI_SIMD counts by what comes of it.
    auto settings = raster::settings_of_results();
    std::erase_if(settings, [](const std::string& one) { return one.rfind("HSI_SIMD=", 0) == 0; });
    ranks.agree("settings", joined(settings, "\n"), "has other settings of GDAL",
                "Give all ranks the same: with --config, or with the environment (mpirun -x NAME).");
    ranks.agree(
        "arithmetic", arithmetic(), "computes otherwise",
        "Their results would differ in the last digits. Use nodes that are alike, or the same HSI_SIMD "
        "for all.");
    divide_node(ranks);
}

Outcome JoinedJob::conclude(const Outcome& mine) {
    if (!m_ranks) return mine;
    const auto ending = m_ranks->conclude({mine.code, mine.what, mine.advice, false});
    return {ending.code, ending.what, ending.advice};
}

void JoinedJob::finish(int code) {
    if (m_ranks) m_ranks->finish(code);
    m_job.reset();
    m_ranks.reset();
}

} // namespace hsi::tool
