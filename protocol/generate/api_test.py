"""Tests of the notation: what it accepts, and where and how it complains."""

import pathlib
import tempfile
import unittest

from protocol.generate import api, docs, exports, server, wire

GOOD = """room memory "Memory"
/// Allocate.
@op(0x0301) @ask(grow bytesize) @was(cuMemAlloc, 3020) @soft
cuMemAlloc_v2(out CUdeviceptr* dptr, size_t bytesize)

@op(0x0401) @oneway @was(cuWrite, 4000) @twin(_ptsz, 7000) @stream(hStream)
cuWrite(in bytes data[count], unsigned int count, CUstream hStream)

@refuse @was(cuOther, 2000)
cuOther(const char* text, void** out)
"""


def load(*texts):
    with tempfile.TemporaryDirectory() as folder:
        for i, text in enumerate(texts):
            (pathlib.Path(folder) / f"{i}.api").write_text(text)
        try:
            return api.load(folder)
        except api.ApiError as e:
            raise api.ApiError(str(e).replace(folder + "/", "")) from None


class Notation(unittest.TestCase):
    def test_reads_calls(self):
        a = load(GOOD)
        alloc, write, other = a.calls
        self.assertEqual(alloc.declarations, "CUdeviceptr* dptr, size_t bytesize")
        self.assertEqual(alloc.ask, ("grow", "bytesize"))
        self.assertEqual(alloc.doc, "Allocate.")
        self.assertEqual(write.declarations, "const void* data, unsigned int count, CUstream hStream")
        self.assertEqual((write.twin, write.oneway, write.op), ("cuWrite_ptsz", True, 0x401))
        self.assertEqual(other.declarations, "const char* text, void** out")

    def test_complains_with_file_and_line(self):
        cases = [
            ("room a \"A\"\n@jump f()", '0.api:2: "@jump" is no word of the notation'),
            ("room a \"A\"\n\n@op(1) @op(2) @was(f, 1) f()", '0.api:3: "@op" is given twice.'),
            ("room a \"A\"\n@refuse @was(f, 1) f(int x", '0.api:2: found "the end of the file", expected a name.'),
            ("room a \"A\"\n@refuse @was(f, 1) f(int x;)", '0.api:2: ";" is no part of the notation.'),
            ("room a \"A\"\n@refuse @was(f) f()", '0.api:2: "@was" takes 2 to 2 arguments, 1 are given.'),
            ("room a \"A\"\n@was(f, 1)\nf()", "0.api:3: f needs exactly one of @op, @local, @refuse, 0 are given."),
            ("room a \"A\"\n@op(1) @was(f, 1) f(int* x)", '0.api:2: pointer "x" of f travels and has no direction.'),
            ("room a \"A\"\n@op(1) @was(f, 1) f(out int x)", '0.api:2: "out int x" is not a pointer.'),
            ("room a \"A\"\n@op(1) @was(f, 1) f(in bytes x)", '0.api:2: "bytes x" needs a direction and a length'),
            ("room a \"A\"\n@op(1) @was(f, 1) f(in bytes x[n])", '0.api:2: the length "n" of f is no parameter of it.'),
            ("room a \"A\"\n@op(1) @oneway @was(f, 1) f(out int* x)", "0.api:2: f is @oneway and has an out parameter."),
            ("room a \"A\"\n@op(0) @was(f, 1) f()", "0.api:2: f has number 0x0, expected 0x0001 to 0xffff."),
            ("room a \"A\"\n@local f()", "0.api:2: f has no @was(base, version)."),
            ("room a \"A\"\n@op(1) @ask(beg 1) @was(f, 1) f()", '0.api:2: "@ask(beg ...)" is not one of'),
            ("room a \"A\"\n@op(1) @stream(s) @was(f, 1) f()", '0.api:2: "@stream(s)" names no parameter of f.'),
        ]
        for text, sentence in cases:
            with self.subTest(text=text), self.assertRaises(api.ApiError) as e:
                load(text)
            self.assertIn(sentence, str(e.exception))

    def test_numbers_and_names_are_unique_across_files(self):
        with self.assertRaisesRegex(api.ApiError, r"1.api:2: number 0x0007 of g is taken by f\."):
            load('room a "A"\n@op(7) @was(f, 1) f()', 'room b "B"\n@op(7) @was(g, 1) g()')
        with self.assertRaisesRegex(api.ApiError, r"1.api:2: f is described already at 0.api:2\."):
            load('room a "A"\n@local @was(f, 1) f()', 'room b "B"\n@local @was(f, 1) f()')


class Emitted(unittest.TestCase):
    def setUp(self):
        self.api = load(GOOD)

    def test_wire_structs_have_the_widest_fields_first(self):
        text = wire.calls_fbs(self.api)
        self.assertIn("struct cuWriteArgs {\n  h_stream:ulong;\n  count:uint;\n}", text)
        self.assertIn("struct cuMemAlloc_v2Reply {\n  dptr:ulong;\n}", text)

    def test_the_client_forwards_refuses_and_twins(self):
        text = exports.client_cc(self.api)
        self.assertIn("if (!dptr) return CUDA_ERROR_INVALID_VALUE;", text)
        self.assertIn('return cuplex::client::NotCarried("cuOther");', text)
        self.assertIn("return cuWrite(data, count, PerThread(hStream));", text)

    def test_the_server_must_handle_every_call_that_travels(self):
        text = server.call_handler_h(self.api)
        self.assertEqual(text.count("= 0;"), 2)
        self.assertNotIn("cuOther", text)

    def test_docs_say_what_is_carried(self):
        text = docs.api_md(self.api)
        self.assertIn("| `cuOther` | cuOther 2.0 |  |  |  |", text)
        self.assertIn("| `cuWrite`, `_ptsz` | cuWrite 4.0 | yes | one-way |  |", text)


if __name__ == "__main__":
    unittest.main()
