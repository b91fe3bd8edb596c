#include "policies/match.h"

#include <gtest/gtest.h>

namespace cuplex::policies {
namespace {

Tenant Named(std::string name, std::vector<Match> matches) {
  Tenant tenant;
  tenant.name = name;
  tenant.matches = std::move(matches);
  tenant.socket.path = "/run/" + name + ".sock";
  return tenant;
}

Policy Three() {
  Policy policy;
  policy.server.socket = "/run/cuplex.sock";
  policy.tenants = {
      Named("alice", {Match{{{1000, 1000}}, {}, {}}}),
      Named("pods", {Match{{{1000, 2000}}, {}, {"/kubepods/pod-*"}}, Match{{}, {{44, 44}}, {}}}),
      Named("socket-only", {})};
  return policy;
}

std::string Who(const Policy& policy, const Peer& peer) {
  auto tenant = Recognise(policy, peer);
  return tenant.ok() ? (*tenant)->name : tenant.error().sentence;
}

TEST(Recognise, OnTheSharedSocketTheFirstMatchOfTheFileDecides) {
  Policy policy = Three();
  EXPECT_EQ(Who(policy, {1000, 1, 1, "/kubepods/pod-1", "/run/cuplex.sock"}), "alice");
  EXPECT_EQ(Who(policy, {1500, 1, 1, "/kubepods/pod-1/x", "/run/cuplex.sock"}), "pods");
  EXPECT_EQ(Who(policy, {7, 44, 1, "", "/run/cuplex.sock"}), "pods") << "any one of its matches";
}

TEST(Recognise, EveryKindInAMatchMustHold) {
  EXPECT_EQ(
      Who(Three(), {1500, 1, 9, "/other", "/run/cuplex.sock"}),
      "No tenant of the policy matches the process 9 (uid 1500, gid 1, cgroup /other); a `match` that holds "
      "for it, a tenant's own socket or a `default_tenant` was expected.");
  EXPECT_EQ(Who(Three(), {1500, 1, 9, "", "/run/cuplex.sock"}),
            "No tenant of the policy matches the process 9 (uid 1500, gid 1, cgroup unknown); a `match` that "
            "holds for it, a tenant's own socket or a `default_tenant` was expected.");
}

TEST(Recognise, ATenantsOwnSocketIsEnoughWhereItHasNoMatches) {
  EXPECT_EQ(Who(Three(), {77, 77, 1, "", "/run/socket-only.sock"}), "socket-only");
}

TEST(Recognise, ATenantsOwnSocketIsNotEnoughWhereItsMatchesDisagree) {
  Policy policy = Three();
  policy.default_tenant = "socket-only";
  EXPECT_EQ(Who(policy, {1000, 1, 1, "", "/run/alice.sock"}), "alice");
  auto refused = Recognise(policy, {1001, 1, 5, "/x", "/run/alice.sock"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().blame, Blame::kRefused);
  EXPECT_EQ(
      refused.error().sentence,
      "The process 5 (uid 1001, gid 1, cgroup /x) reached /run/alice.sock, but no match of the tenant whose "
      "socket that is holds for it.");
}

TEST(Recognise, TheDefaultTenantTakesWhoeverIsUnknown) {
  Policy policy = Three();
  policy.default_tenant = "socket-only";
  EXPECT_EQ(Who(policy, {77, 77, 1, "", "/run/cuplex.sock"}), "socket-only");
  EXPECT_EQ(Who(policy, {1000, 77, 1, "", "/run/cuplex.sock"}), "alice");
}

TEST(Recognise, ASocketThatIsNobodysIsOurFault) {
  auto refused = Recognise(Three(), {1000, 1, 1, "", "/run/unheard-of.sock"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().blame, Blame::kOurs);
}

TEST(Holds, AnEmptyMatchHoldsForNobody) { EXPECT_FALSE(Holds(Match{}, Peer{})); }

TEST(MatchesCgroup, Table) {
  struct Case {
    const char* pattern;
    const char* path;
    bool matches;
  };
  const Case cases[] = {
      {"/", "/", true},
      {"/", "/anything/at/all", true},
      {"/", "", false},
      {"/a", "/a", true},
      {"/a", "/a/b/c", true},
      {"/a", "/ab", false},
      {"/a", "/", false},
      {"/a/b", "/a", false},
      {"/a*", "/abc/d", true},
      {"/a*", "/a", true},
      {"/a*", "/x/a", false},
      {"/*", "/x", true},
      {"/*", "/", true},
      {"/a*/b", "/a/x/b", false},
      {"/*/b", "/a/b", true},
      {"/*/b", "/a/c/b", false},
      {"/pod-?", "/pod-1", true},
      {"/pod-?", "/pod-", false},
      {"/pod-?", "/pod-12", false},
      {"/*a*a*b", "/aaaaaaaaaaaaaaaaaaaaaab", true},
      {"/*a*a*b", "/aaaaaaaaaaaaaaaaaaaaaac", false},
      {"/a", "/a/../b", false},
      {"/*", "/../a", false},
      {"/", "/..", false},
      {"a", "a", false},
      {"/a", "a", false},
      {"/docker-*.scope", "/docker-0f3.scope", true},
      {"/docker-*.scope", "/docker-0f3.scope.d", false},
      {"/A", "/a", false},
  };
  for (const Case& c : cases)
    EXPECT_EQ(MatchesCgroup(c.pattern, c.path), c.matches) << c.pattern << " " << c.path;
}

TEST(MatchesCgroup, ManyStarsOnALongNameTakeNoLongTime) {
  std::string pattern = "/", path = "/" + std::string(4000, 'a');
  for (int i = 0; i < 60; ++i) pattern += "*a";
  EXPECT_TRUE(MatchesCgroup(pattern, path));
  EXPECT_FALSE(MatchesCgroup(pattern + "b", path));
}

}  // namespace
}  // namespace cuplex::policies
