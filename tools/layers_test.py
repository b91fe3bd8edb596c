import pathlib
import tempfile
import unittest

import layers

TABLE = """
| room | may include | because |
|---|---|---|
| `base` | | leaf |
| `cuda` | `base` | data |
| `client` | `cuda`, `base` | |
| `client/runtime` | `cuda` | |
"""


class Arrows(unittest.TestCase):
    def setUp(self):
        self.arrows = layers.read_arrows(TABLE)

    def sentences(self, path, text):
        return list(layers.crossings(path, text, self.arrows))

    def test_table(self):
        self.assertEqual(self.arrows["client"], {"cuda", "base"})
        self.assertEqual(self.arrows["base"], set())

    def test_allowed(self):
        self.assertEqual(self.sentences("client/a.cc", '#include "client/a.h"\n#include "base/x.h"\n#include <map>\n'), [])

    def test_not_allowed_names_file_line_and_both_rooms(self):
        found = self.sentences("base/x.cc", '#include <map>\n#  include "cuda/types.h"\n')
        self.assertEqual(found, ['base/x.cc:2: base may not include cuda ("cuda/types.h"); '
                                 "docs/layering.md allows it nothing."])

    def test_longest_room_counts(self):
        self.assertEqual(len(self.sentences("client/runtime/a.cc", '#include "base/x.h"\n')), 1)
        self.assertEqual(self.sentences("client/other/a.cc", '#include "base/x.h"\n'), [])
        self.assertEqual(len(self.sentences("client/a.cc", '#include "client/runtime/a.h"\n')), 1)

    def test_quotes_are_for_ours(self):
        self.assertEqual(len(self.sentences("cuda/a.cc", '#include "types.h"\n')), 1)
        self.assertEqual(len(self.sentences("cuda/a.cc", '#include "gtest/gtest.h"\n')), 1)
        self.assertEqual(len(self.sentences("cuda/a.cc", "#include <base/x.h>\n")), 1)

    def test_comment_is_no_include(self):
        self.assertEqual(self.sentences("base/x.h", '// #include "cuda/types.h"\n'), [])

    def test_bad_tables(self):
        for text, words in ((TABLE + "| `base` | | again |\n", "second row"),
                            (TABLE + "| `x` | `y` | |\n", "no row of its own"),
                            ("| `a` | `b` | |\n| `b` | `a` | |\n", "circle: a -> b -> a"),
                            ("nothing", "no row like")):
            with self.assertRaisesRegex(layers.TableError, words):
                layers.read_arrows(text)


class Tree(unittest.TestCase):
    def test_walks_rooms_and_reports(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in (("docs/layering.md", TABLE), ("base/x.h", '#include "client/a.h"\n'),
                               ("client/a.h", '#include "base/x.h"\n'), ("elsewhere/b.h", '#include "x"\n')):
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text(text)
            found, files = layers.check(root)
            self.assertEqual(files, 2)
            self.assertEqual(len(found), 1)
            self.assertTrue(found[0].startswith("base/x.h:1: base may not include client"))


if __name__ == "__main__":
    unittest.main()
