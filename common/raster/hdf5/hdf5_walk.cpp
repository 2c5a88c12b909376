// SPDX-License-Identifier: MIT
#include "raster/hdf5/hdf5_walk.h"

#include "raster/hdf5/hdf5_format.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

namespace hsi::raster::hdf5 {
namespace {

/// Skips a selection (the points or blocks of a mapping). Only the data after it matter.
void skip_selection(Cursor& c) {
    const uint64_t type = c.number(4), version = c.number(4);
    const bool none_or_all = type == 0 || type == 3;
    if (none_or_all || version == 1) {
        c.skip(4);
        c.skip(c.number(4));
    } else if (type == 1 && version == 2) { // a list of points
        const size_t bytes = c.number(1);
        const uint64_t rank = c.number(4), points = c.number(bytes);
        if (rank > 32 || points > c.left()) throw Damaged();
        c.skip(rank * points * bytes);
    } else if (type == 2 && version == 2) { // a hyperslab, version 2
        c.skip(1);
        c.skip(c.number(4));
    } else if (type == 2 && version == 3) {
        const uint64_t flags = c.number(1);
        const size_t bytes = c.number(1);
        const uint64_t rank = c.number(4);
        if (rank > 32) throw Damaged();
        uint64_t numbers = 4 * rank;
        if (!(flags & 1)) {
            const uint64_t blocks = c.number(bytes);
            if (blocks > c.left()) throw Damaged();
            numbers = 2 * rank * blocks;
        }
        c.skip(numbers * bytes);
    } else {
        throw Damaged();
    }
}

class Walk {
  public:
    Walk(File& file, Hdf5Contents& found) : m_file(file), m_found(found) {}

    void visit(const std::string& name, uint64_t address, size_t depth) {
        if (depth > deepest_tree || m_seen.size() >= most_objects) {
            m_found.complete = false;
            return;
        }
        if (m_found.objects.size() < most_objects && name.size() > 1) {
            m_found.objects.push_back(name);
            m_found.headers.push_back(address);
        }
        if (!m_seen.insert(address).second) return; // visited before: another name of the object, or a cycle
        try {
            for (const Message& message : Header(m_file, address).messages)
                try {
                    take(name, message, depth);
                } catch (const Damaged&) {
                    m_found.complete = false;
                }
        } catch (const Damaged&) {
            m_found.complete = false;
        }
    }

  private:
    void take(const std::string& name, const Message& message, size_t depth) {
        Cursor c(message.data.data(), message.data.size());
        switch (message.type) {
        case symbol_table: {
            const uint64_t tree = c.number(m_file.offset_size);
            visit_names(name, tree, LocalHeap(m_file, c.number(m_file.offset_size)), depth, 0);
            break;
        }
        case link_info:
            visit_dense(name, c, depth);
            break;
        case link_message:
            visit_link(name, c, depth);
            break;
        case storage_message:
            take_storage(name, c);
            break;
        case layout_message:
            take_layout(name, c);
            break;
        default:
            break;
        }
    }

    void visit_names(const std::string& name, uint64_t address, const LocalHeap& heap, size_t depth,
                     size_t level) {
        if (level > deepest_tree || ++m_nodes > most_objects) throw Damaged();
        const size_t offset = m_file.offset_size;
        const Bytes begin = m_file.read(address, 8 + 2 * offset);
        Cursor head(begin.data(), begin.size());
        if (std::memcmp(begin.data(), "SNOD", 4) == 0) {
            head.skip(6);
            const uint64_t count = head.number(2), entry = 2 * offset + 24;
            const Bytes entries = m_file.read(address + 8, count * entry);
            Cursor c(entries.data(), entries.size());
            for (uint64_t i = 0; i < count; ++i) {
                const std::string own = heap.at(c.number(offset));
                const uint64_t object = c.number(offset), kind = c.number(4);
                c.skip(20);
                constexpr uint64_t soft = 2;
                if (kind == soft)
                    m_found.links.push_back(name + "/" + own);
                else
                    visit(name + "/" + own, object, depth + 1);
            }
            return;
        }
        head.expect("TREE");
        if (head.number(1) != 0) throw Damaged();
        head.skip(1);
        const uint64_t count = head.number(2);
        const uint64_t pair = m_file.length_size + offset;
        const Bytes children = m_file.read(address + 8 + 2 * offset, count * pair);
        Cursor c(children.data(), children.size());
        for (uint64_t i = 0; i < count; ++i) {
            c.skip(m_file.length_size);
            visit_names(name, c.number(offset), heap, depth, level + 1);
        }
    }

    void visit_dense(const std::string& name, Cursor& c, size_t depth) {
        if (c.number(1) != 0) throw Damaged();
        if (c.number(1) & 1) c.skip(8);
        const uint64_t heap_at = c.number(m_file.offset_size), tree_at = c.number(m_file.offset_size);
        // Without a heap, the links are messages of the group's header.
        if (m_file.undefined(heap_at) || m_file.undefined(tree_at)) return;
        const FractalHeap heap(m_file, heap_at);
        const RecordTree tree(m_file, tree_at);
        constexpr size_t hash = 4;
        if (tree.record_bytes() < hash + heap.id_bytes()) throw Damaged();
        for (size_t i = 0; i < tree.count(); ++i)
            try {
                const uint8_t* const record = tree.records.data() + i * tree.record_bytes();
                const Bytes link = heap.object(Cursor(record + hash, heap.id_bytes()));
                Cursor in_heap(link.data(), link.size());
                visit_link(name, in_heap, depth);
            } catch (const Damaged&) {
                m_found.complete = false;
            }
    }

    void visit_link(const std::string& name, Cursor& c, size_t depth) {
        if (c.number(1) != 1) throw Damaged();
        const uint64_t flags = c.number(1);
        constexpr uint64_t hard = 0, external = 64;
        const uint64_t type = flags & 8 ? c.number(1) : hard;
        if (flags & 4) c.skip(8);
        if (flags & 16) c.skip(1);
        const std::string own = name + "/" + c.text_of(c.number(size_t{1} << (flags & 3)));
        if (type == hard) return visit(own, c.number(m_file.offset_size), depth + 1);
        m_found.links.push_back(own);
        if (type != external) return;
        Cursor value = c.part(c.number(2));
        value.skip(1);
        std::string file = value.text(), inner = value.text();
        m_found.references.push_back({Hdf5Reference::Kind::link, own, std::move(file), std::move(inner)});
    }

    void take_storage(const std::string& name, Cursor& c) {
        if (c.number(1) != 1) throw Damaged();
        c.skip(5);
        const uint64_t files = c.number(2);
        const LocalHeap heap(m_file, c.number(m_file.offset_size));
        for (uint64_t i = 0; i < files; ++i) {
            m_found.references.push_back(
                {Hdf5Reference::Kind::storage, name, heap.at(c.number(m_file.length_size)), ""});
            c.skip(2 * m_file.length_size);
        }
    }

    void take_layout(const std::string& name, Cursor& c) {
        constexpr uint64_t first_with_mappings = 4, mapping = 3;
        if (c.number(1) < first_with_mappings || c.number(1) != mapping) return;
        const uint64_t heap = c.number(m_file.offset_size), ours = c.number(4);
        if (m_file.undefined(heap)) return;
        const Bytes head = m_file.read(heap, 8 + m_file.length_size);
        Cursor h(head.data(), head.size());
        h.expect("GCOL");
        h.skip(4);
        const uint64_t size = h.number(m_file.length_size);
        if (size < head.size()) throw Damaged();
        const Bytes body = m_file.read(heap + head.size(), size - head.size());
        Cursor b(body.data(), body.size());
        while (b.left() >= 8 + m_file.length_size) {
            const uint64_t index = b.number(2);
            b.skip(6);
            const uint64_t bytes = b.number(m_file.length_size);
            if (index == 0) break; // free space
            Cursor object = b.part(bytes);
            if (index == ours) return take_mappings(name, object);
            b.skip(std::min<uint64_t>(b.left(), (8 - bytes % 8) % 8));
        }
        throw Damaged();
    }

    void take_mappings(const std::string& name, Cursor& c) {
        if (c.number(1) != 0) throw Damaged();
        const uint64_t count = c.number(m_file.length_size);
        // A virtual dataset may have thousands of mappings to few files.
        std::set<std::pair<std::string, std::string>> known;
        for (uint64_t i = 0; i < count; ++i) {
            std::string file = c.text(), inner = c.text();
            skip_selection(c);
            skip_selection(c);
            if (known.insert({file, inner}).second)
                m_found.references.push_back(
                    {Hdf5Reference::Kind::mapping, name, std::move(file), std::move(inner)});
        }
    }

    File& m_file;
    Hdf5Contents& m_found;
    std::set<uint64_t> m_seen;
    size_t m_nodes = 0;
};

} // namespace
} // namespace hsi::raster::hdf5

namespace hsi::raster {

Hdf5Contents walk_hdf5(const std::string& path) {
    Hdf5Contents found;
    hdf5::File file(path);
    if (!file.is_open()) return found;
    try {
        if (const auto begin = find_begin(file)) hdf5::Walk(file, found).visit("", root_of(file, *begin), 0);
    } catch (const hdf5::Damaged&) {
        found.complete = false;
    }
    return found;
}

} // namespace hsi::raster
