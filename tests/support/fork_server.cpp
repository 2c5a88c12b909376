// SPDX-License-Identifier: MIT
// Runs tools in forks of a process that has loaded the libraries: loading them takes most of the tenth of a
// second that a small run takes. tests/support/suite.py sends the runs. argv[1] is the descriptor of a Unix
// socket. A request is the length of a text and the text, which consists of the folder and the words of the
// command, each ended by a zero; with it come the descriptors of the standard output and of the standard
// error. The answers are the process's number and its status, as of waitpid(), when it has ended.
#include "catalogue.h"
#include "links/links.h"
#include "terminal/terminal.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct Request {
    std::string text;
    std::array<int, 2> streams{-1, -1};
};

/// Returns false at the end of the connection.
bool receive(int socket, Request& request) {
    uint32_t length = 0;
    iovec part{&length, sizeof length};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof request.streams)> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (::recvmsg(socket, &message, MSG_WAITALL | MSG_CMSG_CLOEXEC) != sizeof length) return false;
    const cmsghdr* const header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_type != SCM_RIGHTS ||
        header->cmsg_len != CMSG_LEN(sizeof request.streams))
        return false;
    std::memcpy(request.streams.data(), CMSG_DATA(header), sizeof request.streams);
    request.text.resize(length);
    return ::recv(socket, request.text.data(), length, MSG_WAITALL) == static_cast<ssize_t>(length);
}

/// In the child: what the tool's main() does.
[[noreturn]] void run_tool(int socket, const Request& request) {
    ::close(socket);
    std::vector<std::string> words;
    for (size_t begin = 0, end = 0; (end = request.text.find('\0', begin)) != std::string::npos;
         begin = end + 1)
        words.push_back(request.text.substr(begin, end - begin));
    const int nothing = ::open("/dev/null", O_RDONLY);
    if (words.size() < 2 || ::chdir(words.front().c_str()) != 0 || ::dup2(nothing, 0) < 0 ||
        ::dup2(request.streams[0], 1) < 0 || ::dup2(request.streams[1], 2) < 0)
        ::_exit(127);
    for (const int file : {nothing, request.streams[0], request.streams[1]})
        if (file > 2) ::close(file);
    std::vector<char*> arguments;
    for (size_t k = 1; k < words.size(); ++k)
        arguments.push_back(words[k].data());
    arguments.push_back(nullptr);
    hsi::links::register_links();
    std::exit(hsi::terminal::run_suite(hsi::tools::catalogue(), static_cast<int>(arguments.size()) - 1,
                                       arguments.data()));
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const int socket = std::atoi(argv[1]);
    Request request;
    while (receive(socket, request)) {
        const pid_t child = ::fork();
        if (child == 0) run_tool(socket, request);
        for (const int file : request.streams)
            ::close(file);
        const int32_t number = child;
        int status = 0;
        if (::send(socket, &number, sizeof number, MSG_NOSIGNAL) != sizeof number || child < 0) return 1;
        if (::waitpid(child, &status, 0) != child) return 1;
        if (::send(socket, &status, sizeof status, MSG_NOSIGNAL) != sizeof status) return 1;
    }
    return 0;
}
