// SPDX-License-Identifier: MIT
#include "core/fork.h"

#include <pthread.h>

namespace hsi {

/// The handlers of this library, one list per type. The lists need no memory, because some are created before
/// main().
struct ForkHandlers {
    static inline std::mutex s_lists;
    static inline ForkMutex* s_mutexes = nullptr;
    static inline InForkedChild* s_children = nullptr;
    static inline bool s_installed = false;

    template <class T>
    static void add(T*& list, T& one) {
        const std::lock_guard lock(s_lists);
        one.m_next = list;
        list = &one;
        if (!s_installed) s_installed = pthread_atfork(before, in_parent, in_child) == 0;
    }

  private:
    static void before() {
        s_lists.lock();
        for (ForkMutex* one = s_mutexes; one != nullptr; one = one->m_next)
            one->lock();
    }
    static void in_parent() {
        for (ForkMutex* one = s_mutexes; one != nullptr; one = one->m_next)
            one->unlock();
        s_lists.unlock();
    }
    static void in_child() {
        for (const InForkedChild* one = s_children; one != nullptr; one = one->m_next)
            one->m_begin();
        in_parent();
    }
};

ForkMutex::ForkMutex() noexcept { ForkHandlers::add(ForkHandlers::s_mutexes, *this); }
InForkedChild::InForkedChild(void (*begin)()) noexcept : m_begin(begin) {
    ForkHandlers::add(ForkHandlers::s_children, *this);
}

} // namespace hsi
