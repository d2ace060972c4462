#include "data/nfc.hpp"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "data/utf8.hpp"

namespace fivefold::data {
namespace {

#include "data/nfc_table.inl"

// Hangul syllables are composed by arithmetic (Unicode 15, section 3.12).
constexpr uint32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTrails = 0x11A7;
constexpr uint32_t kVowelCount = 21, kTrailCount = 28, kLeadCount = 19;
constexpr uint32_t kSyllableCount = kLeadCount * kVowelCount * kTrailCount;

struct Pair {
  uint32_t first, second;
};

struct NfcTables {
  std::unordered_map<uint32_t, Pair> apart;
  std::unordered_map<uint64_t, uint32_t> together;
  std::unordered_map<uint32_t, uint8_t> classes;

  NfcTables() {
    const auto runs = [](const auto& table, size_t width, auto take) {
      for (size_t i = 0; i < std::size(table);) {
        const uint32_t first = table[i], count = table[i + 1];
        i += 2;
        for (uint32_t k = 0; k < count; ++k, i += width) take(first + k, &table[i]);
      }
    };
    runs(kClasses, 1, [&](uint32_t c, const uint32_t* v) { classes[c] = uint8_t(*v); });
    runs(kDecompositions, 2, [&](uint32_t c, const uint32_t* v) {
      apart[c] = {v[0], v[1]};
      const bool starters = classes.count(c) == 0 && classes.count(v[0]) == 0;
      const bool excluded =
          std::find(std::begin(kExcluded), std::end(kExcluded), c) != std::end(kExcluded);
      if (v[1] != 0 && starters && !excluded) together[uint64_t{v[0]} << 32 | v[1]] = c;
    });
  }

  uint8_t class_of(uint32_t c) const {
    if (c < 0x300) return 0;
    const auto it = classes.find(c);
    return it == classes.end() ? uint8_t{0} : it->second;
  }

  // 0 when the two do not become one.
  uint32_t compose(uint32_t a, uint32_t b) const {
    if (a - kLeads < kLeadCount && b - kVowels < kVowelCount) {
      return kSyllables + ((a - kLeads) * kVowelCount + (b - kVowels)) * kTrailCount;
    }
    if (a - kSyllables < kSyllableCount && (a - kSyllables) % kTrailCount == 0 && b > kTrails &&
        b < kTrails + kTrailCount) {
      return a + (b - kTrails);
    }
    const auto it = together.find(uint64_t{a} << 32 | b);
    return it == together.end() ? 0 : it->second;
  }
};

struct Mark {
  uint32_t code;
  uint8_t cls;
};

void decompose(const NfcTables& tables, uint32_t c, std::vector<Mark>& out) {
  if (c - kSyllables < kSyllableCount) {
    const uint32_t s = c - kSyllables;
    out.push_back({kLeads + s / (kVowelCount * kTrailCount), 0});
    out.push_back({kVowels + s / kTrailCount % kVowelCount, 0});
    if (s % kTrailCount != 0) out.push_back({kTrails + s % kTrailCount, 0});
    return;
  }
  const auto it = c < 0xC0 ? tables.apart.end() : tables.apart.find(c);
  if (it == tables.apart.end()) {
    out.push_back({c, tables.class_of(c)});
    return;
  }
  decompose(tables, it->second.first, out);
  if (it->second.second != 0) decompose(tables, it->second.second, out);
}

// Marks in the order of their class, those of one class as they were.
void sort_marks(std::vector<Mark>& text) {
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && text[end].cls != 0) ++end;
    std::stable_sort(text.begin() + int64_t(i), text.begin() + int64_t(end),
                     [](const Mark& a, const Mark& b) { return a.cls < b.cls; });
    i = end + 1;
  }
}

void compose(const NfcTables& tables, std::vector<Mark>& text) {
  size_t out = 0;
  int64_t starter = -1;
  for (const Mark mark : text) {
    // Blocked when something of the same or a higher class stands between it and its starter.
    const bool adjacent = starter >= 0 && out == size_t(starter) + 1;
    const bool open =
        starter >= 0 && (adjacent || (text[out - 1].cls != 0 && text[out - 1].cls < mark.cls));
    const uint32_t joined = open ? tables.compose(text[size_t(starter)].code, mark.code) : 0;
    if (joined != 0) {
      text[size_t(starter)].code = joined;
      continue;
    }
    if (mark.cls == 0) starter = int64_t(out);
    text[out++] = mark;
  }
  text.resize(out);
}

uint32_t code_of(std::string_view c) {
  const auto low = [&](size_t i) { return uint32_t(uint8_t(c[i]) & 0x3F); };
  const uint32_t lead = uint8_t(c[0]);
  switch (c.size()) {
    case 1:
      return lead;
    case 2:
      return (lead & 0x1F) << 6 | low(1);
    case 3:
      return (lead & 0x0F) << 12 | low(1) << 6 | low(2);
    default:
      return (lead & 0x07) << 18 | low(1) << 12 | low(2) << 6 | low(3);
  }
}

void append_utf8(uint32_t c, std::string& out) {
  if (c < 0x80) {
    out.push_back(char(c));
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr uint8_t leads[] = {0, 0xC0, 0xE0, 0xF0};
  out.push_back(char(leads[more] | c >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) out.push_back(char(0x80 | (c >> (6 * i) & 0x3F)));
}

}  // namespace

bool is_surely_nfc(std::string_view text) {
  // U+0300 begins with the byte 0xCC, and so does nothing below it.
  return std::none_of(text.begin(), text.end(), [](char c) { return uint8_t(c) >= 0xCC; });
}

std::string to_nfc(std::string_view text) {
  static const NfcTables tables;
  std::string out;
  std::vector<Mark> characters;
  const auto flush = [&] {
    sort_marks(characters);
    compose(tables, characters);
    for (const Mark mark : characters) append_utf8(mark.code, out);
    characters.clear();
  };
  while (!text.empty()) {
    const size_t n = utf8_character(text);
    if (n == 0) {
      flush();
      out.push_back(text[0]);
    } else {
      const uint32_t code = code_of(text.substr(0, n));
      // Plain ASCII is a border nothing composes across, and keeps the list short.
      if (code < 0x80 && !characters.empty()) {
        const uint32_t last = characters.back().code;
        if (last < 0x80) flush();
      }
      decompose(tables, code, characters);
    }
    text.remove_prefix(std::max<size_t>(n, 1));
  }
  flush();
  return out;
}

}  // namespace fivefold::data
