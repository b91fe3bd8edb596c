#include "softcuda/settings.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace cuplex::softcuda {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

Result<Settings> Read(std::map<std::string, std::string> environment) {
  return ReadSettings(
      [&](const char* name) {
        auto it = environment.find(name);
        return it == environment.end() ? nullptr : it->second.c_str();
      },
      4, 16 * kGiB);
}

TEST(Settings, DefaultsFollowTheMachine) {
  auto settings = Read({});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->devices, 1u);
  EXPECT_EQ(settings->workers, 4u);
  EXPECT_EQ(settings->multiprocessors, 4u);
  EXPECT_EQ(settings->memory_bytes, 8 * kGiB);
  EXPECT_EQ(settings->capability_major, 12u);
  EXPECT_EQ(settings->capability_minor, 1u);
}

TEST(Settings, EachIsTakenFromTheEnvironment) {
  auto settings = Read({{"SOFTCUDA_DEVICES", "2"},
                        {"SOFTCUDA_MEMORY", "512MiB"},
                        {"SOFTCUDA_WORKERS", "3"},
                        {"SOFTCUDA_MULTIPROCESSORS", "108"},
                        {"SOFTCUDA_COMPUTE_CAPABILITY", "9.0"},
                        {"SOFTCUDA_WINDOW_BASE", "0x10000000000"},
                        {"SOFTCUDA_CACHE_DIR", "/var/cache/kernels"},
                        {"SOFTCUDA_CACHE_SIZE", "20MiB"}});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->devices, 2u);
  EXPECT_EQ(settings->memory_bytes, 536870912u);
  EXPECT_EQ(settings->workers, 3u);
  EXPECT_EQ(settings->multiprocessors, 108u);
  EXPECT_EQ(settings->capability_major, 9u);
  EXPECT_EQ(settings->capability_minor, 0u);
  EXPECT_EQ(settings->window_base, uintptr_t{1} << 40);
  EXPECT_EQ(settings->cache_folder, "/var/cache/kernels");
  EXPECT_TRUE(settings->cache_folder_given);
  EXPECT_EQ(settings->cache_bytes, 20971520u);
}

TEST(Settings, CompiledKernelsAreKeptAtHome) {
  auto settings = Read({{"HOME", "/home/ada"}});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->cache_folder, "/home/ada/.cache/cuplex/softcuda");
  EXPECT_FALSE(settings->cache_folder_given);
  EXPECT_EQ(settings->cache_bytes, 536870912u);
  EXPECT_EQ(Read({{"HOME", "/home/ada"}, {"XDG_CACHE_HOME", "/fast"}})->cache_folder,
            "/fast/cuplex/softcuda");
  EXPECT_EQ(Read({{"HOME", "/home/ada"}, {"SOFTCUDA_CACHE_DIR", "off"}})->cache_folder, "");
}

TEST(Settings, WhatCannotBeReadIsNamedWithItsVariable) {
  for (auto [name, value] : std::map<std::string, std::string>{{"SOFTCUDA_DEVICES", "0"},
                                                               {"SOFTCUDA_MEMORY", "3MiB"},
                                                               {"SOFTCUDA_WORKERS", "many"},
                                                               {"SOFTCUDA_MULTIPROCESSORS", "-1"},
                                                               {"SOFTCUDA_COMPUTE_CAPABILITY", "12"},
                                                               {"SOFTCUDA_WINDOW_BASE", "4097"},
                                                               {"SOFTCUDA_CACHE_DIR", "kernels"},
                                                               {"SOFTCUDA_CACHE_SIZE", "12"}}) {
    auto settings = Read({{name, value}});
    ASSERT_FALSE(settings.ok()) << name;
    EXPECT_EQ(settings.error().sentence.rfind(name + " is \"" + value + "\"", 0), 0u)
        << settings.error().sentence;
  }
}

}  // namespace
}  // namespace cuplex::softcuda
