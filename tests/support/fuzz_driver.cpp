// SPDX-License-Identifier: MIT
// Takes the place of libFuzzer in builds with other compilers: runs a fuzzing target on its seeds and on
// inputs that it makes from them by random edits, the same ones each time. Without libFuzzer's measure of
// coverage it does not learn, so scripts/fuzz searches for new faults and this program finds those that a
// change has brought near the seeds.
//
//   fuzz_TARGET SEEDS RUNS
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
#ifdef __SANITIZE_ADDRESS__
extern "C" void __sanitizer_set_death_callback(void (*callback)());
#endif

namespace {

constexpr size_t most_bytes = 1 << 16;
std::string g_input, g_found; // the input at hand, and the file that keeps it if it ends the process

void keep_input() {
    std::ofstream(g_found, std::ios::binary) << g_input;
    std::fprintf(stderr, "The input is in %s\n", g_found.c_str());
}

void keep_input_of_abort(int number) {
    keep_input();
    std::signal(number, SIG_DFL);
    std::raise(number);
}

void run(const std::string& input) {
    g_input = input;
    // A copy of this size, so that a read behind the end is one behind an allocation.
    const std::vector<uint8_t> bytes(input.begin(), input.end());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

class Editor {
  public:
    explicit Editor(const std::vector<std::string>& seeds) : m_seeds(seeds) {}
    std::string next() {
        std::string text = m_seeds[below(m_seeds.size())];
        for (size_t edits = 1 + below(4); edits > 0; --edits)
            edit(text);
        if (text.size() > most_bytes) text.resize(most_bytes);
        return text;
    }

  private:
    size_t below(size_t bound) { return static_cast<size_t>(m_random() % std::max<uint64_t>(1, bound)); }
    char any_char() { return static_cast<char>(m_random()); }
    void edit(std::string& text) {
        const size_t at = below(text.size() + 1),
                     length = std::min(below(text.size() / 4 + 2), text.size() - at);
        switch (below(8)) {
        case 0:
            if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
            break;
        case 1:
            if (at < text.size()) text[at] = any_char();
            break;
        case 2:
            text.erase(at, length);
            break;
        case 3:
            text.insert(at, 1 + below(4), any_char());
            break;
        case 4:
            text.insert(at, text.substr(at, length));
            break;
        case 5: {
            const std::string& other = m_seeds[below(m_seeds.size())];
            const size_t from = below(other.size() + 1);
            text.replace(at, length, other.substr(from, 1 + below(64)));
            break;
        }
        case 6:
            text.resize(at);
            break;
        default:
            change_number(text, at);
        }
    }
    /// Replaces the first number at or after this position.
    void change_number(std::string& text, size_t at) {
        static const char* const numbers[] = {"0",
                                              "-1",
                                              "1",
                                              "2",
                                              "65536",
                                              "2147483648",
                                              "1e38",
                                              "1e309",
                                              "nan",
                                              "4294967295",
                                              "9223372036854775807",
                                              "-0.0"};
        const char* const digits = "0123456789.+-eE";
        const size_t begin = text.find_first_of("0123456789", at);
        if (begin == std::string::npos) return;
        text.replace(begin, std::min(text.find_first_not_of(digits, begin), text.size()) - begin,
                     numbers[below(std::size(numbers))]);
    }

    const std::vector<std::string>& m_seeds;
    std::mt19937_64 m_random{1};
};

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s SEEDS RUNS\n", argv[0]);
        return 2;
    }
    g_found = std::filesystem::path(argv[0]).filename().string() + ".found";
    std::signal(SIGABRT, keep_input_of_abort);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_set_death_callback(keep_input);
#endif
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
        files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::vector<std::string> seeds;
    for (const auto& file : files) {
        std::ifstream stream(file, std::ios::binary);
        seeds.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
        run(seeds.back());
    }
    if (seeds.empty()) {
        std::fprintf(stderr, "no seeds in %s\n", argv[1]);
        return 1;
    }
    Editor editor(seeds);
    const long runs = std::atol(argv[2]);
    for (long k = 0; k < runs; ++k)
        run(editor.next());
    std::printf("%zu seeds and %ld edited inputs\n", seeds.size(), runs);
    return 0;
}
