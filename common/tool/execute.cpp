// SPDX-License-Identifier: MIT
#include "tool/execute.h"

#include "core/cuda_module.h"
#include "core/error.h"
#include "core/forced_unwind.h"
#include "core/process_limits.h"
#include "core/process_owner.h"
#include "core/system.h"
#include "core/text.h"
#include "math/simd_target.h"
#include "parallel/ranks.h"
#include "raster/bad_band_list.h"
#include "raster/drivers.h"
#include "raster/side_files.h"
#include "tool/devices.h"
#include "tool/if_needed.h"
#include "tool/plan.h"
#include "tool/run_impl.h"
#include "tool/words.h"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace hsi::tool {

namespace {

/// Registers the files that arguments name, except the source, before anything can be written. `dst`: also
/// registers dst.
void register_outputs(const Call& call, raster::RunFiles& files, bool dst) {
    const CommonOptions& options = call.options();
    const auto each = [&](Role role, const auto& visit) {
        for (const Argument& argument : call.arguments())
            if (const Given& given = call.given_to(argument);
                argument.role == role && given.count > 0 && !given.words.front().empty())
                visit(argument.spelling(), given.words.front());
    };
    each(Role::input, [&](const std::string& role, const std::string& path) {
        files.reads(role, path, raster::files_read_with(path));
    });
    const std::string& output = options.destination.path; // empty if dst is optional and not given
    if (dst && !output.empty() && output.rfind("/vsistdout", 0) != 0) files.writes("dst", output, {});
    each(Role::output, [&](const std::string& role, const std::string& path) {
        // An ENVI header may be changed in place. The body then registers the header.
        if (!raster::names_envi_header(path)) files.writes(role, path, {});
    });
}

/// Registers the files of register_outputs() and the source.
void register_files(const Call& call, raster::RunFiles& files) {
    const CommonOptions& options = call.options();
    register_outputs(call, files, true);
    if (options.source.path.empty()) return;
    // Run::open_source() registers all files of the source when it opens the source, which happens only once.
    // A report that would replace one of these files must be refused earlier, so all of them are registered
    // here if the file of the report exists.
    const std::string& source = options.source.path;
    const bool all = !options.report.empty() && ::access(options.report.c_str(), F_OK) == 0;
    files.reads("src", source, all ? raster::files_read_with(source) : std::vector<std::string>());
}

/// Returns the tool's own arguments as they were given, for the report.
Json own_options(const Call& call) {
    Json own = Json::object();
    for (const Argument& argument : call.arguments()) {
        if (argument.shared) continue;
        auto& value = own[argument.name];
        const Given& given = call.given_to(argument);
        if (argument.type == Type::flag)
            value = given.count > 0;
        else if (given.words.size() > 1)
            value = given.words;
        else if (given.words.size() == 1)
            value = given.words.front();
        else if (!argument.preset.value.empty())
            value = argument.preset.value;
    }
    return own;
}

/// Returns whether this rank works. Makes values on which ranks base decisions equal on all ranks.
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

struct FrontEndEnding {
    FrontEnd* front_end = nullptr;
    ~FrontEndEnding() {
        if (front_end != nullptr) front_end->end();
    }
};

} // namespace

void FrontEnd::give_words(Call& call, const std::vector<std::string>&) {
    throw Error(std::string("internal: this front end understands no words of a step (") +
                call.definition().name + ")");
}

const std::vector<const Definition*>& FrontEnd::tools() const {
    static const std::vector<const Definition*> unknown;
    return unknown;
}

namespace {

/// The front end of a run for one of its steps.
class StepFrontEnd final : public FrontEnd {
  public:
    StepFrontEnd(RunAccess::State& run, std::string title, double share)
        : m_run(run), m_title(std::move(title)), m_from(run.bar.share_done),
          m_share(std::min(share, 1 - m_from)) {
        run.bar.share_done += m_share;
    }
    void begin(const CommonOptions&, Warn) override {}
    void progress(double done) override { m_run.progress(m_from + m_share * done); }
    void note(const std::string& text) override { m_run.front_end.note(m_title + ": " + text); }
    void warn(const std::string& text) override { m_run.warn(m_title + ": " + text); }
    void print(const std::string& text) override { m_run.front_end.print(text); }
    void check_printed() override { m_run.front_end.check_printed(); }
    CancelFlag& cancel() override { return m_run.front_end.cancel(); }
    void limit_cache(uint64_t bytes) override { m_run.front_end.limit_cache(bytes); }
    // The front end of the run reports the failures.
    std::vector<std::string> library_failures() const override { return {}; }
    void committed() override {}
    const std::vector<const Definition*>& tools() const override { return m_run.front_end.tools(); }
    void end() override {}

  private:
    RunAccess::State& m_run;
    const std::string m_title;
    const double m_from, m_share; ///< beginning and length of the step's part of the run's progress bar
};

} // namespace

namespace {

/// Copies the run's options that the step does not have itself.
void take_shared_options(const CommonOptions& whole, Call& call) {
    CommonOptions& own = call.options();
    if (!call.given("device")) own.device = whole.device;
    if (!call.given("memory")) own.memory = whole.memory;
    if (!call.given("device-memory")) own.device_memory = whole.device_memory;
    if (!call.given("threads")) own.threads = whole.threads;
    if (!call.given("tile")) {
        own.tile_samples = whole.tile_samples;
        own.tile_lines = whole.tile_lines;
    }
    own.ranks = whole.ranks;
    own.quiet = whole.quiet;
    // The steps that read a virtual scene need this scene for their plan, so this step is executed even in a
    // dry run.
    const raster::OutputOptions& to = own.destination;
    const bool read_later = raster::is_computed(to) && (to.document || to.at_once);
    own.dry_run = whole.dry_run && !read_later;
}

} // namespace

void give_step_words(const Run& run, Call& call, const std::vector<std::string>& words) {
    RunAccess::state(const_cast<Run&>(run)).front_end.give_words(call, words);
}

bool run_step(Run& run, Call& call, const std::string& title, const std::string& command, double share) {
    RunAccess::State& whole = RunAccess::state(run);
    StepFrontEnd front_end(whole, title, share);
    take_shared_options(run.options(), call);
    CommonOptions& options = call.options();
    raster::OutputOptions& to = options.destination;
    to.history = command;
    to.stac.version = project_version();
    to.memory = quarter(options.memory);
    to.threads = options.threads;
    to.cancel = &front_end.cancel();
    const bool own_name = !to.document && !to.at_once;
    if (own_name) to.run = whole.files;

    auto made = std::make_unique<RunAccess::State>(front_end, call.definition().executable(), command);
    RunAccess::State& state = *made;
    state.files = whole.files;
    state.agreed = whole.agreed;
    state.overwrite = call.given("overwrite");
    state.options = options;
    state.entries.own_options = own_options(call);
    const auto step = RunAccess::make(std::move(made));
    bool done = false;
    try {
        state.start();
        register_outputs(call, *whole.files, own_name);
        call.run_checks();
        done = complete([&] { call.work(*step); });
        state.finish();
    } catch (const UsageError& e) {
        throw UsageError(title + ": " + e.what(), e.advice());
    } catch (const Cancelled&) {
        throw;
    } catch (const Error& e) {
        throw Error(title + ": " + e.what(), e.advice());
    }
    run.report()["steps"].push_back(state.record(nullptr));
    return done;
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
        failure = {1, "out of memory", "Use a smaller -memory, or fewer -threads."};
    } catch (const std::exception& error) {
        failure = {1, error.what(), ""};
    } catch (ForcedUnwind&) {
        throw;
    } catch (...) {
        failure = {1, "an unknown error", ""};
    }
    // After an interrupt by the user, any further error is a consequence.
    if (cancelled && failure.code == 1) failure = {1, Cancelled().what(), Cancelled().advice()};
    failure.what = one_line(raster::with_final_names(failure.what));
    return failure;
}

namespace {

/// Writes the record of -if-needed. The outputs already exist, so a failure is only a warning.
void write_record(Run& run, const MadeRecord& record, const raster::RunFiles& files) {
    try {
        record.write(files);
    } catch (const std::exception& error) {
        run.warn("-if-needed: " + std::string(error.what()) + ": the next run makes the outputs again");
    }
}

} // namespace

Outcome execute(Call& call, FrontEnd& front_end, const std::string& command,
                const std::vector<std::string>& read) {
    std::unique_ptr<Run> run;
    FrontEndEnding ending; // created before the run, which may use the front end until it is destroyed
    bool report_possible = false;
    try {
        if (call.given("if-needed") && !call.given("overwrite") && !call.excluded("overwrite"))
            call.give("overwrite", {});
        call.finish();
        CommonOptions& options = call.options();
        if (!take_part(call)) return {};
        const auto files = raster::make_run_files();
        options.destination.history = command;
        options.destination.stac.version = project_version();
        options.destination.memory = quarter(options.memory);
        options.destination.threads = options.threads;
        options.destination.run = files;
        options.destination.cancel = options.source.cancel = &front_end.cancel();

        auto made = std::make_unique<RunAccess::State>(front_end, call.definition().executable(), command);
        RunAccess::State& state = *made;
        state.files = files;
        state.overwrite = call.given("overwrite");
        state.options = options;
        state.entries.own_options = own_options(call);
        run = RunAccess::make(std::move(made));
        files->set_listeners([&run](const std::string& text) { run->warn(text); },
                             [&run](const std::string& text) { run->note(text); });
        front_end.begin(options, [&state](const std::string& text) { state.warn(text); });
        ending.front_end = &front_end;
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
                run->note("Nothing to do: the outputs are up to date with the inputs and this command");
                run->report()["if_needed"] = "nothing to do";
                if (parallel::ranks().root()) state.commit();
                return {};
            }
        }
        if (parallel::ranks().job_size() > 1 && (call.definition().one_process || options.source.follow))
            run->note(run->tool() + (options.source.follow ? " -follow" : "") +
                      " uses one process: rank 0 works, the other ranks wait.");

        if (process_is_ours() && parallel::ranks().job_size() == 1 &&
            options.device.kind != DeviceChoice::Kind::cpu)
            hide_other_cuda_devices(options.device);
        const CudaStart start(options.device);

        raster::register_drivers();
        complete([&] { call.work(*run); });
        state.outputs_are_good = false; // keep_outputs() does not apply to failures after the body
        Outcome done;
        done.report = state.entries.report;
        state.finish();
        state.agree_on_files();
        // The body continued after these failures. The failures did not end the work, but must be reported.
        for (const std::string& text : front_end.library_failures())
            run->warn("GDAL: " + one_line(text));
        if (!parallel::ranks().root()) return done;
        parallel::ranks().await_others();
        if (made_record) made_record->look_at_inputs(*files);
        state.commit();
        front_end.committed();
        if (made_record && !options.dry_run) write_record(*run, *made_record, *files);
        return done;
    } catch (ForcedUnwind&) {
        throw;
    } catch (...) {
        Outcome failure = current_failure(front_end.cancel().requested());
        if (run) {
            failure.report = RunAccess::state(*run).entries.report;
            // Infinite values may be the reason of the failure.
            RunAccess::state(*run).warn_of_overflow(false);
        }
        if (report_possible && !run->files()->clashes("-report", call.options().report)) {
            try {
                RunAccess::state(*run).write_failure_report(failure);
            } catch (const std::exception& error) {
                failure.advice += (failure.advice.empty() ? "" : "\n") + std::string(error.what());
            }
        }
        // The growing output is removed now, however this process ends later.
        call.options().destination.run.reset();
        if (ending.front_end != nullptr) std::exchange(ending.front_end, nullptr)->end();
        run.reset();
        return failure;
    }
}

namespace {

/// Returns the group of instruction sets with the same results (docs/architecture.md).
std::string arithmetic() {
    const std::string name = math::simd_target();
    return name.find("AVX") != std::string::npos ? "with FMA" : "without FMA";
}

/// Divides the memory of a node among its ranks, and its processors unless each rank was given its own.
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
        "Start all ranks with the same command, or set HSI_MPI=NO to make each process a separate run.");
    // HSI_SIMD is left out, because its effect is compared below ("arithmetic").
    auto settings = raster::settings_of_results();
    std::erase_if(settings, [](const std::string& one) { return one.rfind("HSI_SIMD=", 0) == 0; });
    ranks.agree("settings", joined(settings, "\n"), "has other settings of GDAL",
                "Give all ranks the same settings, with --config or in the environment (mpirun -x NAME).");
    ranks.agree("arithmetic", arithmetic(), "uses other processor instructions",
                "Results would differ in the last digits. Use equal nodes, or the same HSI_SIMD on all.");
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
