#include "ptx/vocabulary.h"

#include <array>
#include <string>
#include <unordered_map>

namespace cuplex::ptx {
namespace {

struct TypeRow {
  std::string_view text;
  unsigned bits;
};

constexpr TypeRow kTypes[] = {{"", 0},
#define X(id, text, bits) {text, bits},
                              CUPLEX_PTX_TYPES(X)
#undef X
};
constexpr std::string_view kSpaces[] = {"",
#define X(id, text) text,
                                        CUPLEX_PTX_SPACES(X)
#undef X
};
constexpr std::string_view kOpcodes[] = {
#define X(id, text) text,
    CUPLEX_PTX_OPCODES(X)
#undef X
};
constexpr std::string_view kMods[] = {
#define X(id, text, ...) text,
    CUPLEX_PTX_TYPES(X) CUPLEX_PTX_SPACES(X) CUPLEX_PTX_MODIFIERS(X)
#undef X
};
#define CUPLEX_PTX_RANGE8(P, S) P "0" S, P "1" S, P "2" S, P "3" S, P "4" S, P "5" S, P "6" S, P "7" S
constexpr std::string_view kSpecials[] = {
#define X(id, text) "%" text,
    CUPLEX_PTX_SPECIALS(X)
#undef X
};
constexpr std::array<std::string_view, 32> kEnvregs = {CUPLEX_PTX_RANGE8("%envreg", ""),
                                                       "%envreg8",
                                                       "%envreg9",
                                                       "%envreg10",
                                                       "%envreg11",
                                                       "%envreg12",
                                                       "%envreg13",
                                                       "%envreg14",
                                                       "%envreg15",
                                                       "%envreg16",
                                                       "%envreg17",
                                                       "%envreg18",
                                                       "%envreg19",
                                                       "%envreg20",
                                                       "%envreg21",
                                                       "%envreg22",
                                                       "%envreg23",
                                                       "%envreg24",
                                                       "%envreg25",
                                                       "%envreg26",
                                                       "%envreg27",
                                                       "%envreg28",
                                                       "%envreg29",
                                                       "%envreg30",
                                                       "%envreg31"};
constexpr std::array<std::string_view, 8> kPms = {CUPLEX_PTX_RANGE8("%pm", "")};
constexpr std::array<std::string_view, 8> kPms64 = {CUPLEX_PTX_RANGE8("%pm", "_64")};

constexpr uint32_t kTypeCount = std::size(kTypes) - 1;
constexpr uint32_t kSpaceCount = std::size(kSpaces) - 1;

template <typename T>
using Words = std::unordered_map<std::string_view, T>;

template <typename T, typename Texts>
Words<T> WordsOf(const Texts& texts) {
  Words<T> words;
  uint32_t at = 0;
  for (std::string_view text : texts) words.emplace(text, static_cast<T>(at++));
  return words;
}

template <typename T>
std::optional<T> Find(const Words<T>& words, std::string_view text) {
  auto at = words.find(text);
  if (at == words.end()) return std::nullopt;
  return at->second;
}

}  // namespace

unsigned BitsOf(Type type) { return kTypes[static_cast<size_t>(type)].bits; }

Type TypeOf(Mod mod) {
  auto at = static_cast<uint32_t>(mod);
  return at < kTypeCount ? static_cast<Type>(at + 1) : Type::kNone;
}

Space SpaceOf(Mod mod) {
  auto at = static_cast<uint32_t>(mod);
  return at >= kTypeCount && at < kTypeCount + kSpaceCount ? static_cast<Space>(at - kTypeCount + 1)
                                                           : Space::kNone;
}

Mod ModOf(Type type) {
  return type == Type::kNone ? Mod::kNone : static_cast<Mod>(static_cast<uint32_t>(type) - 1);
}

Mod ModOf(Space space) {
  return space == Space::kNone ? Mod::kNone : static_cast<Mod>(static_cast<uint32_t>(space) - 1 + kTypeCount);
}

std::string_view Text(Type type) { return kTypes[static_cast<size_t>(type)].text; }
std::string_view Text(Space space) { return kSpaces[static_cast<size_t>(space)]; }

std::string_view Text(Opcode opcode) {
  auto at = static_cast<size_t>(opcode);
  return at < std::size(kOpcodes) ? kOpcodes[at] : std::string_view();
}

std::string_view Text(Mod mod) {
  auto at = static_cast<size_t>(mod);
  return at < std::size(kMods) ? kMods[at] : std::string_view();
}

std::string_view Text(Special special) {
  auto at = static_cast<uint32_t>(special);
  if (at < std::size(kSpecials)) return kSpecials[at];
  if (uint32_t n = at - static_cast<uint32_t>(Special::kEnvreg0); n < kEnvregs.size()) return kEnvregs[n];
  if (uint32_t n = at - static_cast<uint32_t>(Special::kPm0); n < kPms.size()) return kPms[n];
  if (uint32_t n = at - static_cast<uint32_t>(Special::kPm0x64); n < kPms64.size()) return kPms64[n];
  return {};
}

std::optional<Opcode> FindOpcode(std::string_view text) {
  static const Words<Opcode> words = WordsOf<Opcode>(kOpcodes);
  return Find(words, text);
}

std::optional<Mod> FindMod(std::string_view text) {
  static const Words<Mod> words = WordsOf<Mod>(kMods);
  return Find(words, text);
}

std::optional<Special> FindSpecial(std::string_view text) {
  static const Words<Special> words = [] {
    Words<Special> out;
    uint32_t at = 0;
    for (std::string_view word : kSpecials) out.emplace(word.substr(1), static_cast<Special>(at++));
    auto range = [&](Special first, auto& texts) {
      auto id = static_cast<uint32_t>(first);
      for (std::string_view word : texts) out.emplace(word.substr(1), static_cast<Special>(id++));
    };
    range(Special::kEnvreg0, kEnvregs);
    range(Special::kPm0, kPms);
    range(Special::kPm0x64, kPms64);
    return out;
  }();
  return Find(words, text);
}

}  // namespace cuplex::ptx
