// SPDX-License-Identifier: MIT
// The C functions, which catch all exceptions except the end of a thread that a hook has ended.
#include "arrays/hsi.h"

#include "arrays/call.h"
#include "arrays/catalogue.h"
#include "arrays/exchange.h"

#include "core/cancel.h"
#include "core/error.h"
#include "core/forced_unwind.h"
#include "core/process_owner.h"
#include "core/text.h"
#include "tool/definition_json.h"
#include "tool/execute.h"
#include "tool/front_end.h"
#include "tool/run.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

struct hsi_cancellation {
    hsi::CancelFlag flag;
};

struct hsi_result {
    int code = HSI_OK;
    std::string message, advice, json;
    std::map<std::string, std::string> texts;
};

namespace hsi::arrays {
namespace {

using Texts = std::vector<std::string>;

/// The front end of a call: passes progress and messages to the caller's hooks, and keeps the messages.
class ArrayFrontEnd final : public tool::FrontEnd {
  public:
    explicit ArrayFrontEnd(const hsi_hooks* hooks) : m_hooks(hooks) {}

    void begin(const tool::CommonOptions&, Warn) override {}
    void progress(double done) override {
        if (m_hooks != nullptr && m_hooks->progress != nullptr && m_hooks->progress(m_hooks->user, done) != 0)
            cancel().request();
    }
    void note(const std::string& text) override { tell(m_notes, 0, text); }
    void warn(const std::string& text) override { tell(m_warnings, 1, text); }
    void print(const std::string& text) override {
        const std::lock_guard lock(m_mutex);
        m_printed.push_back(with_roles(text));
    }
    void check_printed() override {}
    CancelFlag& cancel() override {
        return m_hooks != nullptr && m_hooks->cancellation != nullptr ? m_hooks->cancellation->flag : m_flag;
    }
    void limit_cache(uint64_t) override {}
    Texts library_failures() const override { return {}; }
    void committed() override {}
    void end() override {}

    const Texts& printed() const { return m_printed; }
    const Texts& warnings() const { return m_warnings; }
    const Texts& notes() const { return m_notes; }

  private:
    void tell(Texts& to, int warning, const std::string& text) {
        const std::string said = with_roles(text);
        const std::lock_guard lock(m_mutex);
        to.push_back(said);
        if (m_hooks != nullptr && m_hooks->message != nullptr)
            m_hooks->message(m_hooks->user, warning, said.c_str());
    }

    const hsi_hooks* m_hooks;
    CancelFlag m_flag;
    std::mutex m_mutex;
    Texts m_printed, m_warnings, m_notes;
};

const tool::Definition& definition_of(const char* algorithm) {
    const std::string name = algorithm != nullptr ? algorithm : "";
    std::vector<std::string> names;
    for (const tool::Definition* one : catalogue()) {
        if (name == one->name) return *one;
        names.push_back(one->name);
    }
    const std::string near = did_you_mean(name, names);
    throw UsageError("unknown algorithm '" + name + "'",
                     near.empty() ? "Algorithms: " + joined(names, ", ") + "." : near);
}

/// Gives the call one argument per input and output. Its value is the path that stands for the role.
void give_roles(tool::Call& call, const Exchange& exchange) {
    const auto give = [&](const std::string& role, bool in) {
        const tool::Argument* const argument = call.find(role);
        const bool reads = argument != nullptr &&
                           (argument->role == tool::Role::source || argument->role == tool::Role::input);
        const bool writes = argument != nullptr && (argument->role == tool::Role::destination ||
                                                    argument->role == tool::Role::output);
        if (!(in ? reads : writes) || tool::is_about_files(*argument)) {
            std::vector<std::string> names;
            for (const tool::Argument& one : call.arguments()) {
                const bool fits = in ? one.role == tool::Role::source || one.role == tool::Role::input
                                     : one.role == tool::Role::destination || one.role == tool::Role::output;
                if (fits && !tool::is_about_files(one)) names.push_back(one.name);
            }
            throw UsageError(std::string(call.definition().name) + " has no " + (in ? "input" : "output") +
                                 " '" + role + "'",
                             names.empty() ? "Leave it out." : "Use one of: " + joined(names, ", ") + ".");
        }
        if (argument->name != role)
            throw UsageError(std::string(call.definition().name) + ": '" + role + "' is called " +
                             argument->name + " here");
        // The word "none" instead of a file name means that the tool reads nothing.
        const char* const text = in ? exchange.text(role) : nullptr;
        const bool none = text != nullptr && std::strcmp(text, "none") == 0;
        call.give(role, {none ? "none" : path_of_role(role, argument->role == tool::Role::destination)});
    };
    for (const auto& one : exchange.inputs())
        give(one.first, true);
    for (const auto& one : exchange.outputs())
        give(one.first, false);
}

/// Chooses the device that holds the arrays.
void choose_device(tool::Call& call, const Exchange& exchange) {
    if (exchange.device() < 0) return;
    const std::string number = std::to_string(exchange.device()), &name = call.definition().name,
                      there = exchange.role_on_device() + " is in the memory of CUDA device " + number;
    const tool::Argument* const argument = call.find("device");
    if (argument == nullptr)
        throw UsageError(name + " computes on the CPU, but " + there, "Copy the array to host memory.");
    if (!call.given("device")) return call.give("device", {"cuda:" + number});
    const DeviceChoice said = parse_device(call.given_to(*argument).words.front());
    if (said.kind != DeviceChoice::Kind::cuda || said.devices != std::vector<int>{exchange.device()})
        throw UsageError("device: " + call.given_to(*argument).words.front() + " was requested, but " + there,
                         "Leave device out, or copy the array.");
}

std::string json_of(const Exchange& exchange, const ArrayFrontEnd& front_end, const Json& report) {
    OrderedJson json;
    json["outputs"] = exchange.descriptions();
    json["report"] = report;
    json["printed"] = front_end.printed();
    json["warnings"] = front_end.warnings();
    json["notes"] = front_end.notes();
    return with_roles(json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
}

void fail(hsi_result& result, const tool::Outcome& outcome, bool cancelled) {
    result.code = cancelled && outcome.code == HSI_FAILED ? HSI_CANCELLED : outcome.code;
    result.message = with_roles(outcome.what);
    result.advice = with_roles(outcome.advice);
}

void call_tool(hsi_result& result, bool plan, const char* algorithm, const char* options,
               const hsi_input* inputs, size_t input_count, const hsi_output* outputs, size_t output_count,
               const hsi_hooks* hooks) {
    if (hooks != nullptr && hooks->size != sizeof(hsi_hooks))
        throw UsageError("the member 'size' of the hooks is not " + std::to_string(sizeof(hsi_hooks)),
                         "Set it to sizeof(hsi_hooks) of this library's hsi.h.");
    Exchange exchange(inputs, input_count, outputs, output_count, hooks);
    tool::Call call(definition_of(algorithm));
    if (options != nullptr && *options != 0) give_options(call, options);
    give_roles(call, exchange);
    choose_device(call, exchange);
    if (plan) {
        if (call.find("dry-run") == nullptr)
            throw UsageError(std::string(call.definition().name) + " has no plan");
        call.give("dry-run", {});
    }
    ArrayFrontEnd front_end(hooks);
    const Exchange::Scope scope(exchange);
    const tool::Outcome outcome = tool::execute(call, front_end, call.definition().executable());
    if (outcome.code != 0) fail(result, outcome, front_end.cancel().requested());
    result.texts = exchange.texts();
    result.json = json_of(exchange, front_end, outcome.report);
}

int run(bool plan, const char* algorithm, const char* options, const hsi_input* inputs, size_t input_count,
        const hsi_output* outputs, size_t output_count, const hsi_hooks* hooks, hsi_result** result) {
    if (result != nullptr) *result = nullptr;
    std::unique_ptr<hsi_result> made;
    int code = HSI_FAILED;
    try {
        static const bool shared = (share_process(), true);
        (void)shared;
        made = std::make_unique<hsi_result>();
        try {
            call_tool(*made, plan, algorithm, options, inputs, input_count, outputs, output_count, hooks);
        } catch (ForcedUnwind&) {
            throw;
        } catch (...) {
            fail(*made, tool::current_failure(false), false);
        }
        if (made->json.empty()) made->json = "{}";
        code = made->code;
    } catch (ForcedUnwind&) { // a hook has ended the thread
        throw;
    } catch (...) { // there is no memory for the message
    }
    if (result != nullptr) *result = made.release();
    return code;
}

} // namespace
} // namespace hsi::arrays

extern "C" {

hsi_cancellation* hsi_cancellation_new(void) { return new (std::nothrow) hsi_cancellation; }
void hsi_cancel(hsi_cancellation* cancellation) {
    if (cancellation != nullptr) cancellation->flag.request();
}
void hsi_cancellation_free(hsi_cancellation* cancellation) { delete cancellation; }

const char* hsi_version(void) { return hsi::tool::project_version(); }

const char* hsi_algorithms(void) {
    try {
        static const std::string all = [] {
            auto list = hsi::OrderedJson::array();
            for (const auto* one : hsi::arrays::catalogue())
                list.push_back(hsi::arrays::description_of(*one));
            return list.dump();
        }();
        return all.c_str();
    } catch (...) {
        return "[]";
    }
}

int hsi_run(const char* algorithm, const char* options, const hsi_input* inputs, size_t input_count,
            const hsi_output* outputs, size_t output_count, const hsi_hooks* hooks, hsi_result** result) {
    return hsi::arrays::run(false, algorithm, options, inputs, input_count, outputs, output_count, hooks,
                            result);
}

int hsi_plan(const char* algorithm, const char* options, const hsi_input* inputs, size_t input_count,
             const hsi_output* outputs, size_t output_count, const hsi_hooks* hooks, hsi_result** result) {
    return hsi::arrays::run(true, algorithm, options, inputs, input_count, outputs, output_count, hooks,
                            result);
}

int hsi_result_code(const hsi_result* result) { return result != nullptr ? result->code : HSI_FAILED; }
const char* hsi_result_message(const hsi_result* result) {
    return result != nullptr ? result->message.c_str() : "out of memory";
}
const char* hsi_result_advice(const hsi_result* result) {
    return result != nullptr ? result->advice.c_str() : "";
}
const char* hsi_result_text(const hsi_result* result, const char* role) {
    if (result == nullptr || role == nullptr) return nullptr;
    try {
        const auto found = result->texts.find(role);
        return found == result->texts.end() ? nullptr : found->second.c_str();
    } catch (...) {
        return nullptr;
    }
}
const char* hsi_result_json(const hsi_result* result) {
    return result != nullptr ? result->json.c_str() : "{}";
}
void hsi_result_free(hsi_result* result) { delete result; }

} // extern "C"
