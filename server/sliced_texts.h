// SlicedTexts: the second forms of one tenant's kernels as PTX, known by the content of the modules that they
// were made of. Any thread.
//
// So a module that many processes of a tenant load, or one again and again, is parsed and rewritten once for
// each kernel that is too long. As with images, tenants have nothing of each other's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>

#include "base/result.h"
#include "ptx/passes/slice.h"
#include "server/image_store.h"

namespace cuplex::server {

class SlicedTexts {
 public:
  struct Made {
    ptx::SlicedKernel kernel;  // with a refusal, where it must run whole
    std::string text;          // empty then
  };

  /// At most `most_bytes` of text are kept; what was not asked for for longest goes first.
  explicit SlicedTexts(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  /// The kernel `name` of an image; `arch` picks the PTX of a fatbin. Errors: there is no PTX in it, or none
  /// that can be read.
  Result<std::shared_ptr<const Made>> Get(std::string_view image, uint32_t arch, std::string_view name);

  /// How many had to be made.
  uint64_t made() const;
  uint64_t bytes() const;

 private:
  using Key = std::tuple<ImageKey, uint32_t, std::string>;
  struct Row {
    Key key;
    std::shared_ptr<const Made> made;
  };
  std::shared_ptr<const Made> Find(const Key& key);

  const uint64_t most_bytes_;
  mutable std::mutex lock_;
  uint64_t bytes_ = 0;
  uint64_t made_ = 0;
  std::list<Row> rows_;  // last used first
  std::map<Key, std::list<Row>::iterator> by_key_;
};

}  // namespace cuplex::server
