#include "bench/softcuda/string_match/string_match.h"

#include "bench/softcuda/string_match/string_match_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace string_match {
namespace {

int Match(const char* text, int length, const char* word, int word_length, unsigned char* found) {
  int count = 0;
  for (int at = 0; at < length; ++at) {
    bool same = at + word_length <= length;
    for (int i = 0; same && i < word_length; ++i) same = text[at + i] == word[i];
    found[at] = same;
    count += same;
  }
  return count;
}

std::vector<char> Text() {
  std::vector<char> text;
  for (const std::uint32_t word : Words(kText, 1)) text.push_back("acgt"[word >> 30]);
  return text;
}

class StringMatch : public Case {
 public:
  explicit StringMatch(const Module& module)
      : kernel_(module.GetKernel("string_match")),
        device_text_(module.device(), text_),
        device_word_(module.device(), word_),
        found_(module.device(), kText),
        count_(module.device(), 1) {}
  void Launch() override {
    count_.Clear();
    kernel_.Launch({kText / kThreads}, {kThreads}, device_text_.at(), kText, device_word_.at(), kWord,
                   found_.at(), count_.at());
  }
  void Native() override {
    expected_count_[0] = Match(text_.data(), kText, word_.data(), kWord, expected_.data());
  }
  std::optional<std::string> Compare() override {
    if (auto differs = Unequal(count_.Read(), expected_count_)) return differs;
    return Unequal(found_.Read(), expected_);
  }

 private:
  Kernel kernel_;
  std::vector<char> text_ = Text();
  std::vector<char> word_ = std::vector<char>(text_.begin() + kText / 2, text_.begin() + kText / 2 + kWord);
  std::vector<unsigned char> expected_ = std::vector<unsigned char>(kText);
  std::vector<int> expected_count_ = std::vector<int>(1);
  Array<char> device_text_;
  Array<char> device_word_;
  Array<unsigned char> found_;
  Array<int> count_;
};

}  // namespace
}  // namespace string_match

extern const Subject kStringMatch;
const Subject kStringMatch = {"string_match", string_match::kPtx, true, Make<string_match::StringMatch>};

}  // namespace cuplex::bench
