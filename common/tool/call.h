// SPDX-License-Identifier: MIT
// One call of a tool: the values of its arguments.
#pragma once

#include "tool/declaration.h"
#include "tool/run.h"

#include <deque>
#include <map>
#include <string>
#include <vector>

namespace hsi::tool {

/// The values of an argument.
struct Given {
    std::vector<std::string> words; ///< all words, in order
    int count = 0;                  ///< number of occurrences
};

/// The values of one call. A front end makes a Call for each call of a tool. Calls are independent: several
/// may run in one process.
class Call {
  public:
    explicit Call(const Definition& definition) : m_declaration(definition) {}
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    const Declaration& declaration() const { return m_declaration; }
    const Definition& definition() const { return m_declaration.definition(); }
    const std::deque<Argument>& arguments() const { return m_declaration.arguments(); }
    const Argument* find(const std::string& name) const { return m_declaration.find(name); }

    /// Adds an occurrence of an argument with its words (no words for a flag). \throws UsageError if the
    /// argument is unknown or the number of words is wrong.
    void give(const std::string& name, const std::vector<std::string>& words);
    bool given(const std::string& name) const;    ///< the argument was given
    bool excluded(const std::string& name) const; ///< excluded by another argument that was given
    /// Returns the values so far of one of arguments().
    const Given& given_to(const Argument& argument) const;

    /// Converts and checks the arguments, and fills options(). Call it after all arguments are given. \throws
    /// UsageError.
    void finish();
    /// Return the shared options, which are complete after finish(). The front end adds the history, the
    /// cancellation flag and the register of files.
    CommonOptions& options() { return *m_declaration.m_options; }
    const CommonOptions& options() const { return *m_declaration.m_options; }
    void run_checks() const;
    void work(Run& run) const { m_declaration.m_body(run); } ///< runs the tool's body
    /// Returns dst, else the first output that is given, else the output of Builder::tells_output(). May be
    /// empty.
    std::string first_output() const;

  private:
    void resolve();

    const Declaration m_declaration;
    std::map<const Argument*, Given> m_given;
};

} // namespace hsi::tool
