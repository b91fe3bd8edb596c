#include "policies/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <map>
#include <sstream>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace cuplex::policies {
namespace {

constexpr size_t kDeepest = 16;
constexpr size_t kMostLines = 1000;

Mark From(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }

/// Thrown through yaml-cpp to stop it; never leaves this file.
struct Stop {
  Mark at;
  std::string sentence;
};

class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(Faults& faults) : faults_(faults) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    Put(Node(Node::Kind::kNothing, From(mark)));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Stop{From(mark), "An alias (*name) was given; values are shared through `profiles:` instead."};
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    CheckTag(mark, tag);
    Put(Node(Node::Kind::kScalar, From(mark), value));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, Node::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, Node::Kind::kMapping);
  }
  void OnMapEnd() override { Close(); }

  Node root;

 private:
  struct Level {
    Node node;
    std::optional<Entry> entry;       // a mapping's key that waits for its value
    std::map<std::string, int> seen;  // a mapping's keys and their lines
  };

  // yaml-cpp calls plain scalars "?" and quoted ones "!"; everything else was written by the operator.
  static void CheckTag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    throw Stop{From(mark), fmt::format("The tag {} was given; a value without a tag was expected.", tag)};
  }

  void Open(const YAML::Mark& mark, const std::string& tag, Node::Kind kind) {
    CheckTag(mark, tag);
    if (levels_.size() >= kDeepest) {
      throw Stop{From(mark),
                 fmt::format("Lists and mappings nest more than {} deep; a policy needs no more.", kDeepest)};
    }
    levels_.push_back({Node(kind, From(mark)), std::nullopt, {}});
  }

  void Close() {
    Node node = std::move(levels_.back().node);
    levels_.pop_back();
    Put(std::move(node));
  }

  void Put(Node node) {
    if (levels_.empty()) {
      root = std::move(node);
      return;
    }
    Level& level = levels_.back();
    if (level.node.kind == Node::Kind::kList) {
      level.node.items.push_back(std::move(node));
    } else if (!level.entry) {
      if (node.kind != Node::Kind::kScalar) {
        throw Stop{node.at, fmt::format("The key of a mapping is {}; a word was expected.", Given(node))};
      }
      level.entry = Entry{std::move(node.text), node.at, Node()};
    } else {
      level.entry->value = std::move(node);
      Keep(level, *std::exchange(level.entry, std::nullopt));
    }
  }

  void Keep(Level& level, Entry entry) {
    auto [first, fresh] = level.seen.try_emplace(entry.key, entry.at.line);
    if (fresh) {
      level.node.entries.push_back(std::move(entry));
    } else {
      faults_.Add(entry.at, fmt::format("The key \"{}\" is given twice, first on line {}; once was expected.",
                                        entry.key, first->second));
    }
  }

  Faults& faults_;
  std::vector<Level> levels_;
};

/// Length of the UTF-8 sequence at the start of `text`, 0 where there is none.
size_t SequenceLength(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = byte(0);
  size_t length = lead < 0x80                   ? 1
                  : lead >= 0xC2 && lead < 0xE0 ? 2
                  : lead >= 0xE0 && lead < 0xF0 ? 3
                  : lead >= 0xF0 && lead < 0xF5 ? 4
                                                : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;   // longer than needed
  if (lead == 0xED && byte(1) >= 0xA0) return 0;  // a surrogate
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) >= 0x90) return 0;
  return length;
}

// yaml-cpp takes the byte 4 for the end of its input and guesses at other encodings, so a file could say more
// than is read of it. What it says of a tab in the indentation helps nobody. Only plain text goes on to it.
bool IsText(std::string_view text, Faults& faults) {
  Mark at;
  bool indenting = true;
  for (size_t i = 0; i < text.size();) {
    unsigned char byte = static_cast<unsigned char>(text[i]);
    if (byte == '\t' && indenting) {
      faults.Add(at, "The line begins with a tab; spaces were expected.");
      return false;
    }
    indenting = byte == '\n' || (indenting && byte == ' ');
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F) {
      faults.Add(at, fmt::format("The control character 0x{:02x} was given; plain text was expected.", byte));
      return false;
    }
    size_t length = SequenceLength(text.substr(i));
    if (length == 0) {
      faults.Add(at, fmt::format("The byte 0x{:02x} is not UTF-8 here; UTF-8 text was expected.", byte));
      return false;
    }
    i += length;
    at = byte == '\n' ? Mark{at.line + 1, 1} : Mark{at.line, at.column + 1};
  }
  return true;
}

}  // namespace

std::string Given(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNothing:
      return "nothing";
    case Node::Kind::kScalar:
      return fmt::format("\"{}\"", node.text);
    case Node::Kind::kList:
      return node.items.empty() ? "an empty list" : "a list";
    case Node::Kind::kMapping:
      return node.entries.empty() ? "an empty mapping" : "a mapping";
  }
  return "nothing";
}

std::string Faults::Print(std::string_view file) const {
  std::vector<const Fault*> order;
  order.reserve(faults_.size());
  for (const Fault& fault : faults_) order.push_back(&fault);
  // Faults of one place stay in the order in which they were found.
  std::sort(order.begin(), order.end(),
            [](const Fault* a, const Fault* b) { return std::tie(a->at, a) < std::tie(b->at, b); });
  std::string out;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0) out += '\n';
    if (i == kMostLines) {
      out += fmt::format("{}: {} more faults are not shown.", file, order.size() - i);
      break;
    }
    out += fmt::format("{}:{}:{}: {}", file, order[i]->at.line, order[i]->at.column, order[i]->sentence);
  }
  return out;
}

std::optional<Node> ReadDocument(std::string_view text, Faults& faults) {
  if (!IsText(text, faults)) return std::nullopt;
  TreeBuilder builder(faults);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) {
      faults.Add({}, "The file is empty; a mapping with `version` and `tenants` was expected.");
      return std::nullopt;
    }
    TreeBuilder second(faults);
    if (parser.HandleNextDocument(second)) {
      faults.Add(second.root.at, "A second document begins here; one document was expected.");
      return std::nullopt;
    }
  } catch (const Stop& stop) {
    faults.Add(stop.at, stop.sentence);
    return std::nullopt;
  } catch (const YAML::Exception& e) {
    faults.Add(From(e.mark), fmt::format("This is not well-formed YAML: {}.", e.msg));
    return std::nullopt;
  } catch (const std::exception& e) {
    faults.Add({}, fmt::format("The YAML reader gave up: {}.", e.what()));
    return std::nullopt;
  }
  return std::move(builder.root);
}

}  // namespace cuplex::policies
