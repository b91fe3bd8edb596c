#include "softcuda/jit/opcodes.h"

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace cuplex::softcuda {
namespace {

TEST(Opcodes, AreTheOnesThatTheDocumentationNames) {
  std::ifstream file(CUPLEX_SOURCE_DIR "/docs/ptx.md");
  std::stringstream text;
  text << file.rdbuf();
  std::string all = text.str();
  const std::string fence = "```opcodes\n";
  size_t begin = all.find(fence);
  ASSERT_NE(begin, std::string::npos);
  begin += fence.size();
  std::istringstream words(all.substr(begin, all.find("```", begin) - begin));
  std::set<std::string> documented, present;
  for (std::string word; words >> word;) documented.insert(word);
  for (const OpcodeRow& row : OpcodeRows()) present.insert(std::string(ptx::Text(row.opcode)));
  EXPECT_EQ(documented, present);
}

TEST(Opcodes, AreFoundByName) {
  EXPECT_EQ(FindOpcodeRow(ptx::Opcode::kFma)->opcode, ptx::Opcode::kFma);
  EXPECT_EQ(FindOpcodeRow(ptx::Opcode::kTcgen05), nullptr);
  EXPECT_EQ(FindOpcodeRow(static_cast<ptx::Opcode>(0x10003)), nullptr);
}

}  // namespace
}  // namespace cuplex::softcuda
