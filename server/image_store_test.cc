#include "server/image_store.h"

#include "server/image_globals.h"

namespace cuplex::server {
namespace {

std::span<const std::byte> Bytes(const std::string& s) { return std::as_bytes(std::span(s)); }

TEST(ImageStore, TheOneNotUsedForLongestGoesFirst) {
  ImageStore store(100);
  store.Add({1, 0}, std::string(40, 'a'));
  store.Add({2, 0}, std::string(40, 'b'));
  EXPECT_NE(store.Find({1, 0}), nullptr);
  store.Add({3, 0}, std::string(40, 'c'));
  EXPECT_EQ(store.Find({2, 0}), nullptr);
  EXPECT_NE(store.Find({1, 0}), nullptr);
  EXPECT_EQ(store.bytes(), 80u);
  store.Add({4, 0}, std::string(101, 'd'));
  EXPECT_EQ(store.Find({4, 0}), nullptr);
}

TEST(ImageUploads, PiecesComeInOrderAndAreChecked) {
  ImageStore store(1000);
  ImageUploads uploads;
  const std::string image = "0123456789";
  const ImageKey key = HashImage(Bytes(image));
  EXPECT_FALSE(uploads.Write(store, key, 0, Bytes(image)).ok()) << "not offered";
  ASSERT_FALSE(*uploads.Offer(store, key, 10));
  EXPECT_TRUE(uploads.Write(store, key, 0, Bytes(image).first(4)).ok());
  EXPECT_FALSE(uploads.Write(store, key, 5, Bytes(image).subspan(5)).ok()) << "a gap";
  ASSERT_FALSE(*uploads.Offer(store, key, 10));
  EXPECT_FALSE(uploads.Write(store, key, 0, Bytes(image + "x")).ok()) << "longer than offered";
  ASSERT_FALSE(*uploads.Offer(store, key, 10));
  EXPECT_FALSE(uploads.Write(store, key, 0, Bytes("0123456780")).ok()) << "other bytes";
  EXPECT_EQ(store.Find(key), nullptr);
  ASSERT_FALSE(*uploads.Offer(store, key, 10));
  EXPECT_TRUE(uploads.Write(store, key, 0, Bytes(image).first(4)).ok());
  EXPECT_TRUE(uploads.Write(store, key, 4, Bytes(image).subspan(4)).ok());
  ASSERT_NE(store.Find(key), nullptr);
  EXPECT_EQ(*store.Find(key), image);
  EXPECT_TRUE(*uploads.Offer(store, key, 10));
  EXPECT_FALSE(uploads.Offer(store, key, 11).ok());
  EXPECT_FALSE(uploads.Offer(store, {7, 7}, 0).ok());
  EXPECT_FALSE(uploads.Offer(store, {7, 7}, 1001).ok());
  EXPECT_FALSE(uploads.Offer(store, {7, 7}, ~uint64_t{0}).ok());
}

// Of the XXH3 specification's published test values: the hash of nothing.
TEST(HashImage, OfNothing) {
  const ImageKey key = HashImage({});
  EXPECT_EQ(key.high, 0x99aa06d3014798d8u);
  EXPECT_EQ(key.low, 0x6001c324468d497fu);
}

TEST(GlobalBytes, SumsTheVariablesOfPtx) {
  const std::string head = ".version 7.0\n.target sm_70\n.address_size 64\n";
  EXPECT_EQ(*GlobalBytes(head, 70), 0u);
  EXPECT_EQ(
      *GlobalBytes(
          head + ".global .align 4 .b8 a[1000];\n.const .f32 b = 0f00000000;\n.global .v4 .f32 c[40];\n", 70),
      1024u + 512 + 1024);
  EXPECT_FALSE(GlobalBytes("ELF?", 70).ok());
  EXPECT_FALSE(GlobalBytes(std::string("\x7f"
                                       "ELF\2\1\1",
                                       7),
                           70)
                   .ok());
}

}  // namespace
}  // namespace cuplex::server
