"""What the demo concludes from what it saw; with made-up scrapes, without a server."""
import contextlib
import io
import types
import unittest

import demo
import serving

PAGE = """# HELP cuplex_tenant_memory_used_bytes Device memory.
# TYPE cuplex_tenant_memory_used_bytes gauge
cuplex_tenant_memory_used_bytes{tenant="a",device="0"} 1024
cuplex_tenant_memory_used_bytes{device="1",tenant="a"} 2e3
cuplex_tenant_sessions{tenant="a"} 2
cuplex_build_info{version="0.1.0",driver="soft \\"x\\", 1"} 1
unrelated 7
"""


class Pages(unittest.TestCase):
    def test_samples_with_and_without_labels(self):
        samples = serving.parse_metrics(PAGE)
        self.assertEqual(len(samples), 5)
        self.assertIn(("unrelated", {}, 7.0), samples)
        self.assertIn(("cuplex_build_info", {"version": "0.1.0", "driver": 'soft \\"x\\", 1'}, 1.0), samples)

    def test_rows_sum_over_devices(self):
        self.assertEqual(demo.rows(serving.parse_metrics(PAGE)), {"a": demo.Row(sessions=2, used=3024)})


class Conclusions(unittest.TestCase):
    def conclude(self, **changes):
        """The summary of a good run, but for `changes`; the Failure's words, or None."""
        row = {"sessions": 0, "used": 0, "launches": 9, "out_of_memory": 3, "over": [], "together": True, "told": 3, "runs": 4,
               "failure": None, **changes}
        tenants = [types.SimpleNamespace(name=name, runs=row["runs"], failure=row["failure"] if name == "train" else None,
                                         told=row["told"] if name == "greedy" else 0) for name in ("render", "train", "greedy")]
        page = "".join(f'{series}{{tenant="{t.name}"}} {row.get(field, 1)}\n' for t in tenants for series, field in demo.SERIES.items())
        server = types.SimpleNamespace(driver="soft", port=1, scrape=lambda: serving.parse_metrics(page))
        watch = types.SimpleNamespace(scrapes=1, peak={}, over=row["over"], together=row["together"])
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            try:
                demo.summarize(server, tenants, watch, seconds=0)
            except demo.Failure as failure:
                self.assertNotIn("demo: ok", said.getvalue())
                return str(failure)
        self.assertTrue(said.getvalue().endswith("demo: ok\n"))
        return None

    def test_a_good_run_is_ok(self):
        self.assertIsNone(self.conclude())

    def test_each_fault_is_told(self):
        for changes, words in (({"failure": "matrix_multiply ended with status 1"}, "ended with status 1"),
                               ({"runs": 0}, "finished no run"), ({"over": ["a had 2 bytes of 1"]}, "had 2 bytes of 1"),
                               ({"together": False}, "no scrape saw all tenants"), ({"told": 0}, "was never told"),
                               ({"used": 5}, "still has 0 sessions and 5 bytes"), ({"sessions": 1}, "still has 1 sessions"),
                               ({"launches": 0}, "know no launches"), ({"out_of_memory": 2}, "count 2 out-of-memory")):
            self.assertIn(words, self.conclude(**changes) or "", changes)


if __name__ == "__main__":
    unittest.main()
