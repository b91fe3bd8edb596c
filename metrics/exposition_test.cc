#include "metrics/exposition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cuplex::metrics {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::vector<ExposedFamily> Parse(std::string_view text) {
  auto families = ParseExposition(text);
  EXPECT_TRUE(families.ok()) << families.error().sentence;
  return families.ok() ? *families : std::vector<ExposedFamily>{};
}

TEST(Exposition, ReadsFamiliesLabelsAndValues) {
  auto families = Parse(
      "# HELP x_total What x is.\n"
      "# TYPE x_total counter\n"
      "x_total{b=\"2\",a=\"q\\\"\\\\\\n\"} 1e3\n"
      "# a remark\n"
      "# HELP y_bytes What y is.\n"
      "# TYPE y_bytes gauge\n"
      "y_bytes 12\n");
  ASSERT_EQ(families.size(), 2u);
  EXPECT_EQ(families[0].help, "What x is.");
  EXPECT_EQ(families[0].type, "counter");
  EXPECT_THAT(families[0].samples.at(0).labels, ElementsAre(Pair("a", "q\"\\\n"), Pair("b", "2")));
  EXPECT_THAT(Series(families),
              ElementsAre(Pair("x_total{a=\"q\"\\\n\",b=\"2\"}", 1000.0), Pair("y_bytes", 12.0)));
  EXPECT_THAT(Lint(families), IsEmpty());
}

TEST(Exposition, RefusesWhatIsNotOfTheFormat) {
  for (std::string_view text : {"# HELP x X.\n# TYPE x gauge\nx 1",                     // no end of line
                                "x 1\n",                                                // no family
                                "# HELP x X.\n# TYPE x gauge\nx\n",                     // no value
                                "# HELP x X.\n# TYPE x gauge\nx one\n",                 // no number
                                "# HELP x X.\n# TYPE x gauge\nx{a=b} 1\n",              // no quotes
                                "# HELP x X.\n# TYPE x gauge\nx{a=\"b} 1\n",            // no closing quote
                                "# HELP x X.\n# TYPE x gauge\nx{a=\"b\",a=\"c\"} 1\n",  // a label twice
                                "# HELP x X.\n# TYPE x gauge\nxy 1\n",                  // another's sample
                                "# HELP x X.\n# HELP x X.\nx 1\n",                      // HELP twice
                                "# HELP x X.\nx 1\n# TYPE x gauge\n",                   // TYPE too late
                                "# HELP x X.\nx 1\n# HELP y Y.\ny 1\n# HELP x X.\n"}) {
    EXPECT_FALSE(ParseExposition(text).ok()) << text;
  }
}

std::vector<std::string> LintOf(std::string_view text) { return Lint(Parse(text)); }

TEST(Lint, FindsWhatIsAgainstTheConventions) {
  EXPECT_THAT(LintOf("# HELP x X.\n# TYPE x counter\nx 1\n"),
              ElementsAre("x is a counter and does not end in _total."));
  EXPECT_THAT(LintOf("# HELP x_total X.\n# TYPE x_total gauge\nx_total 1\n"),
              ElementsAre("x_total is no counter and ends in _total."));
  EXPECT_THAT(LintOf("# TYPE x gauge\nx 1\n"), ElementsAre("x has no HELP."));
  EXPECT_THAT(LintOf("# HELP x X.\nx 1\n"), ElementsAre("x has no TYPE."));
  EXPECT_THAT(LintOf("# HELP x_ms X.\n# TYPE x_ms gauge\nx_ms 1\n"),
              ElementsAre("x_ms is in ms, no base unit."));
  EXPECT_THAT(LintOf("# HELP xY X.\n# TYPE xY gauge\nxY 1\n"),
              ElementsAre("xY is not written in snake case."));
  EXPECT_THAT(LintOf("# HELP x_count X.\n# TYPE x_count gauge\nx_count 1\n"),
              ElementsAre("x_count ends in _count, which summaries and histograms own."));
  EXPECT_THAT(LintOf("# HELP x_gauge X.\n# TYPE x_gauge gauge\nx_gauge 1\n"),
              ElementsAre("x_gauge has its type in its name."));
  EXPECT_THAT(LintOf("# HELP x X.\n# TYPE x gauge\nx{a=\"1\"} 1\nx{a=\"1\"} 2\n"),
              ElementsAre("x{a=\"1\"} is given twice."));
  EXPECT_THAT(LintOf("# HELP x X.\n# TYPE x gauge\nx{aB=\"1\"} 1\n"),
              ElementsAre("x{aB=\"1\"} has the label aB, not in snake case."));
  EXPECT_THAT(LintOf("# HELP x_total X.\n# TYPE x_total counter\nx_total -1\n"),
              ElementsAre("x_total is a counter below zero."));
  EXPECT_THAT(LintOf("# HELP x X.\n# TYPE x gauge\nx nan\n"), ElementsAre("x has no number for a value."));
}

}  // namespace
}  // namespace cuplex::metrics
