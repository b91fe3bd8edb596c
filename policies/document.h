// Document: one YAML document as a tree whose nodes know where they stand, and the faults found in a file.
//
// yaml-cpp scans the text; the tree is ours because yaml-cpp's own keeps no place for keys and takes a key
// given twice in silence. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cuplex::policies {

/// Both count from 1.
struct Mark {
  int line = 1;
  int column = 1;
  auto operator<=>(const Mark&) const = default;
};

struct Entry;

struct Node {
  enum class Kind { kNothing, kScalar, kList, kMapping };

  explicit Node(Kind kind = Kind::kNothing, Mark at = {}, std::string text = {});

  Kind kind;
  Mark at;
  std::string text;            // of a scalar, as it was meant: without quotes, escapes resolved
  std::vector<Node> items;     // of a list
  std::vector<Entry> entries;  // of a mapping; keys are unique
};

struct Entry {
  std::string key;
  Mark at;
  Node value;
};

inline Node::Node(Kind kind, Mark at, std::string text) : kind(kind), at(at), text(std::move(text)) {}

/// How a sentence names what was given: "\"text\"", "a list", "a mapping", "nothing".
std::string Given(const Node& node);

/// What is wrong with a file.
class Faults {
 public:
  void Add(Mark at, std::string sentence) { faults_.push_back({at, std::move(sentence)}); }
  bool empty() const { return faults_.empty(); }
  size_t size() const { return faults_.size(); }
  /// "FILE:LINE:COLUMN: sentence" lines in the order of the file, joined by '\n'; beyond the first thousand a
  /// last line says how many more there are.
  std::string Print(std::string_view file) const;

 private:
  struct Fault {
    Mark at;
    std::string sentence;
  };
  std::vector<Fault> faults_;
};

/// The one document in `text`. Adds a fault, and gives nullopt, where the text is not well-formed UTF-8 and
/// YAML, holds no document or more than one, nests deeper than a policy can, or uses tags or aliases. A key
/// given twice is a fault too; the first one stays.
std::optional<Node> ReadDocument(std::string_view text, Faults& faults);

}  // namespace cuplex::policies
