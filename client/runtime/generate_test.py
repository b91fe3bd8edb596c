"""Tests of generate.py: what a line of runtime.api becomes, and where errors point."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import generate


def chosen(text, names, major=13):
    return generate.choose("x.api", generate.parse("x.api", text), major, names.split())


class Lines(unittest.TestCase):
    def test_a_carried_call_keeps_its_error(self):
        source = generate.exports_source(chosen("cudaFree(void* devPtr)", "cudaFree"), 13)
        self.assertIn("CUPLEX_EXPORTED cudaError_t cudaFree(void* devPtr) { return Keep(cuplex::runtime::Free(devPtr)); }", source)

    def test_a_twin_changes_every_stream(self):
        calls = chosen("cudaX(cudaStream_t a, int n, cudaStream_t b) @ptsz", "cudaX cudaX_ptsz")
        source = generate.exports_source(calls, 13)
        self.assertIn("cudaX(cudaStream_t a, int n, cudaStream_t b) { return Keep(cuplex::runtime::X(a, n, b)); }", source)
        self.assertIn("cudaX_ptsz(cudaStream_t a, int n, cudaStream_t b) { return Keep(cuplex::runtime::X(PerThread(a), n, PerThread(b))); }", source)

    def test_a_call_without_stream_is_told_its_default(self):
        calls = chosen("cudaX(int n) @ptds", "cudaX cudaX_ptds")
        source = generate.exports_source(calls, 13)
        self.assertIn("cudaX(int n) { return Keep(cuplex::runtime::X(n, nullptr)); }", source)
        self.assertIn("cudaX_ptds(int n) { return Keep(cuplex::runtime::X(n, cudaStreamPerThread)); }", source)
        self.assertIn("cudaError_t X(int n, cudaStream_t stream);", generate.calls_header(calls, 13))

    def test_a_bare_name_is_refused(self):
        source = generate.exports_source(chosen("cudaX @ptsz", "cudaX cudaX_ptsz"), 13)
        self.assertIn('cudaError_t cudaX_ptsz() { return Keep(Refuse("cudaX_ptsz")); }', source)

    def test_bare_and_void_answers(self):
        source = generate.exports_source(chosen("__cudaR(void** h) -> void @bare\ncudaN(cudaError_t e) -> const char* @bare", "__cudaR cudaN"), 13)
        self.assertIn("void __cudaR(void** h) { cuplex::runtime::NvccR(h); }", source)
        self.assertIn("const char* cudaN(cudaError_t e) { return cuplex::runtime::N(e); }", source)

    def test_versions(self):
        text = "cudaX(int a) @13\ncudaX(long a) @12\ncudaOld() @12"
        self.assertIn("X(int a)", generate.calls_header(chosen(text, "cudaX", 13), 13))
        self.assertIn("X(long a)", generate.calls_header(chosen(text, "cudaX cudaOld", 12), 12))

    def test_version_script(self):
        script = generate.version_script(chosen("cudaB()\ncudaA()", "cudaA cudaB"), 13)
        self.assertEqual(script, "libcudart.so.13 {\n  global:\n    cudaA;\n    cudaB;\n  local: *;\n};\n")


class Docs(unittest.TestCase):
    def test_a_row_says_what_each_version_does(self):
        page = generate.docs_page(generate.parse("x.api", "cudaX(cudaStream_t s) @ptsz\ncudaOld @12\ncudaY(int a) @13\ncudaY @12"))
        self.assertIn("2 of 3 calls are carried", page)
        self.assertIn("| `cudaX` | yes | yes | _ptsz |\n", page)
        self.assertIn("| `cudaOld` | no |  |  |\n", page)
        self.assertIn("| `cudaY` | no | yes |  |\n", page)


class Errors(unittest.TestCase):
    def refuse(self, text, names, sentence):
        with self.assertRaises(generate.ApiError) as raised:
            chosen(text, names)
        self.assertIn(sentence, str(raised.exception))

    def test_errors_name_file_and_line(self):
        self.refuse("\ncudaX(int", "cudaX", "x.api:2: `cudaX(int` is not a call")
        self.refuse("cudaX(int)", "cudaX", "x.api:1: the parameters of cudaX")
        self.refuse("cudaX() @quick", "cudaX", "x.api:1: @quick is not a word")
        self.refuse("cudaX(int n) @ptsz", "cudaX cudaX_ptsz", "takes no cudaStream_t")
        self.refuse("cudaX(int n) @ptsz=m", "cudaX cudaX_ptsz", "names no parameter")
        self.refuse("cudaX -> int", "cudaX", "a result type but no parameters")
        self.refuse("cudaX()\ncudaX()", "cudaX", "x.api:2: cudaX is described twice")
        self.refuse("cudaX()", "", "x.api:1: libcudart.so.13 does not export cudaX")
        self.refuse("cudaX()", "cudaX cudaY", "no line describes cudaY")


if __name__ == "__main__":
    unittest.main()
