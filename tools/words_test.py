import unittest

import words


class Text(unittest.TestCase):
    def test_each_kind_is_found_with_its_line(self):
        for bad in ("TO" "DO: later", "see /ro" "ot/x", "open(\"/wo" "rk/a\")", "a place" "holder", "for n" "ow we",
                    "hard" "coded", "not imple" "mented"):
            found = list(words.in_text("a.cc", "fine\n" + bad))
            self.assertEqual(len(found), 1, bad)
            self.assertTrue(found[0].startswith("a.cc:2: "), found)

    def test_innocent_lines(self):
        for good in ("the network/work/ folder", "${root}/root/x", "before nowhere", "method to do it", "/worker/x"):
            self.assertEqual(list(words.in_text("a.cc", good)), [], good)


class Names(unittest.TestCase):
    def test_names(self):
        for bad in ("server/session_man" "ager.h", "base/ut" "il.h", "ut" "ils/x.h", "a/hel" "per.cc", "a/x_im" "pl.h"):
            self.assertEqual(len(list(words.in_name(bad))), 1, bad)
        for good in ("server/session.h", "ptx/simple.h", "docs/implicit.md", "base/futile.cc"):
            self.assertEqual(list(words.in_name(good)), [], good)


if __name__ == "__main__":
    unittest.main()
