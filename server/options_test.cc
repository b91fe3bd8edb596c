#include "server/options.h"

namespace cuplex::server {
namespace {

Result<CommandLine> Read(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "cuplexd");
  return ReadCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

TEST(Options, WhatIsGivenAndWhatIsNot) {
  auto line = Read(
      {"--policy", "p.yaml", "--driver", "/x/libcuda.so.1", "--run-dir", "/run/x", "--stop-seconds", "9"});
  ASSERT_TRUE(line.ok()) << line.error().sentence;
  EXPECT_EQ(line->options.policy, "p.yaml");
  EXPECT_EQ(line->options.driver, "/x/libcuda.so.1");
  EXPECT_EQ(line->options.run_dir, "/run/x");
  EXPECT_EQ(line->options.stop_seconds, 9u);
  EXPECT_FALSE(line->options.check);
  EXPECT_EQ(Read({"-p", "p.yaml"})->options.driver, "auto");
}

TEST(Options, HelpAndVersionNeedNothingElse) {
  EXPECT_THAT(Read({"--help"})->text, testing::HasSubstr("--policy"));
  EXPECT_THAT(Read({"--version"})->text, testing::StartsWith("cuplexd "));
}

TEST(Options, ErrorsNameWhatWasGiven) {
  for (auto [arguments, part] : std::vector<std::pair<std::vector<const char*>, const char*>>{
           {{}, "--policy FILE"},
           {{"--polcy", "x"}, "polcy"},
           {{"-p", "x", "--run-dir", "relative"}, "\"relative\""},
           {{"-p", "x", "--job-threads", "0"}, "0 job threads"},
           {{"-p", "x", "--job-threads", "many"}, "many"},
           {{"-p", "x", "--stop-seconds", "601"}, "601"}}) {
    auto line = Read(arguments);
    ASSERT_FALSE(line.ok()) << part;
    EXPECT_EQ(line.error().blame, Blame::kCaller);
    EXPECT_THAT(line.error().sentence, testing::HasSubstr(part));
  }
}

}  // namespace
}  // namespace cuplex::server
