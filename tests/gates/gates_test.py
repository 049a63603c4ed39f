#!/usr/bin/env python3
"""Each gate must catch a bad tree: one small tree per rule, and a good one that passes."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class GateTest(unittest.TestCase):
    def setUp(self):
        self.tree = Path(tempfile.mkdtemp(prefix="nibble_gate_"))
        self.addCleanup(shutil.rmtree, self.tree)
        shutil.copy(ROOT / "layers.toml", self.tree)
        for module in ("base", "numerics", "checkpoint", "cli"):
            self.write(f"src/nibble/{module}/{module}.h", "#pragma once\n#include <vector>\n")

    def write(self, name, text):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def gate(self, name):
        done = subprocess.run([sys.executable, ROOT / "tools" / f"check_{name}.py", "--root", self.tree],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def assert_caught(self, name, *words):
        code, output = self.gate(name)
        self.assertEqual(code, 1, output)
        for word in words:
            self.assertIn(word, output)

    def assert_passes(self, name):
        code, output = self.gate(name)
        self.assertEqual(code, 0, output)


class TypeNamesTest(GateTest):
    def test_two_types_of_one_name(self):
        self.write("src/nibble/base/a.h", "namespace nibble {\nstruct Shard {\n  int a;\n};\n}\n")
        self.write("src/nibble/cli/b.cc", "namespace nibble {\nclass Shard final : public Base<int> {};\n}\n")
        self.assert_caught("type_names", "nibble::Shard", "src/nibble/base/a.h", "src/nibble/cli/b.cc")

    def test_what_may_share_a_name(self):
        self.write("src/nibble/base/a.h", "namespace nibble {\nstruct State;\nstruct A {\n  struct State;\n};\n}\n")
        self.write("src/nibble/base/a.cc", "namespace nibble {\nstruct A::State {};\nnamespace {\nstruct Own {};\n}\n}\n")
        self.write("src/nibble/cli/b.cc", "namespace nibble::b {\nenum class State { kOn };\n}\n")
        self.write("src/nibble/cli/c.cc", "namespace nibble {\nnamespace {\nstruct Own {};\n}\nvoid f(struct A a) {}\n}\n")
        self.assert_passes("type_names")


class LayersTest(GateTest):
    def test_good_tree(self):
        self.write("src/nibble/cli/a.cc", '#include <fmt/format.h>\n#include "nibble/checkpoint/checkpoint.h"\n')
        self.write("src/nibble/base/a_test.cc", '#include <gtest/gtest.h>\n#include "nibble/testing/t.h"\n')
        self.write("src/nibble/testing/t.h", "#pragma once\n")
        self.assert_passes("layers")

    def test_upward_include(self):
        self.write("src/nibble/base/a.cc", '\n#include "nibble/numerics/numerics.h"\n')
        self.assert_caught("layers", "src/nibble/base/a.cc:2", "base may not include numerics")

    def test_upward_include_from_a_test(self):
        self.write("src/nibble/base/a_test.cc", '#include "nibble/cli/cli.h"\n')
        self.assert_caught("layers", "base may not include cli")

    def test_testing_outside_tests(self):
        self.write("src/nibble/testing/t.h", "#pragma once\n")
        self.write("src/nibble/cli/a.cc", '#include "nibble/testing/t.h"\n')
        self.assert_caught("layers", "testing is for tests only")

    def test_unknown_module(self):
        self.write("src/nibble/misc/a.cc", "\n")
        self.assert_caught("layers", "is in no module")

    def test_relative_include(self):
        self.write("src/nibble/base/a.cc", '#include "base.h"\n')
        self.assert_caught("layers", "name headers from the root")

    def test_missing_header(self):
        self.write("src/nibble/base/a.cc", '#include "nibble/base/gone.h"\n')
        self.assert_caught("layers", "there is no such file")

    def test_library_of_another_module(self):
        self.write("src/nibble/numerics/a.cc", "#include <re2/re2.h>\n")
        self.assert_caught("layers", "RE2 is for checkpoint, quantize, verify, not for numerics")

    def test_library_in_a_header(self):
        self.write("src/nibble/cli/a.h", "#include <fmt/format.h>\n")
        self.assert_caught("layers", "fmt may not stand in a header")

    def test_json_in_a_header(self):
        self.write("src/nibble/cli/a.h", "#include <nlohmann/json.hpp>\n")
        self.assert_caught("layers", "may not stand in a header")
        self.write("src/nibble/cli/a.h", "#include <nlohmann/json_fwd.hpp>\n")
        self.assert_passes("layers")

    def test_gtest_outside_tests(self):
        self.write("src/nibble/cli/a.cc", "#include <gtest/gtest.h>\n")
        self.assert_caught("layers", "GoogleTest is for tests only")

    def test_unknown_library(self):
        self.write("src/nibble/cli/a.cc", "#include <boost/asio.hpp>\n")
        self.assert_caught("layers", "no library of layers.toml has this header")

    def test_long_file(self):
        self.write("src/nibble/base/a.cc", "\n" * 401)
        code, output = self.gate("layers")
        self.assertEqual(code, 0)
        self.assertIn("a.cc (401)", output)
        self.write("src/nibble/base/a.cc", "\n" * 801)
        self.assert_caught("layers", "801 lines, 800 is the end")
        shutil.rmtree(self.tree / "src/nibble/base")
        self.write("src/nibble/kernels/a.cc", "\n" * 1000)
        self.assert_passes("layers")

    def test_backend_macro(self):
        self.write("src/nibble/checkpoint/a.cc", "#ifdef NIBBLE_CUDA\n#endif\n")
        self.assert_caught("layers", "asks the preprocessor for a backend")
        shutil.rmtree(self.tree / "src/nibble/checkpoint")
        self.write("src/nibble/numerics/a.h", "#if defined(__CUDACC__)\n#endif\n")
        self.assert_passes("layers")

    def test_self_registering_statics(self):
        for line in ("static const bool done = register_format(kInt);", "const Registrar registrar(make());",
                     "REGISTER_FORMAT(Int);", "__attribute__((constructor)) void start() {}",
                     "bool done = formats::Registry::get().Register(make());"):
            self.write("src/nibble/cli/a.cc", line + "\n")
            self.assert_caught("layers", "registers itself")
        self.write("src/nibble/cli/a.cc", "void f() {\n  register_mapping(a);\n}\nvoid register_mapping(int a) {}\n")
        self.assert_passes("layers")


class FormatNamesTest(GateTest):
    def test_good_tree(self):
        self.write("src/nibble/numerics/nvfp4.h", "// nvfp4\n")
        self.write("src/nibble/checkpoint/conventions/a.cc", "// MXFP4\n")
        self.write("src/nibble/cli/a_test.cc", "// int4\n")
        self.write("src/nibble/cli/a.cc", "int print4(); // F8_E4M3, bf16, point4\n")
        self.assert_passes("format_names")

    def test_names_anywhere(self):
        for line in ("// the NVFP4 case", 'const char* kDefault = "int4-g32";', "case Format::kMxfp4: break;", '"Q4_K"',
                     "using Fp8 = int;", "int4_group", "is_fp4(x)", "struct Int4Group;", "auto x = quantize_int4(y);"):
            self.write("src/nibble/cli/a.cc", line + "\n")
            self.assert_caught("format_names", "src/nibble/cli/a.cc:1", "formats: 1")


class WordsTest(GateTest):
    def test_good_tree(self):
        self.write("README.md", "An example session: /usr/local/cuda, $HOME/work/x, docs/home/page\n")
        self.assert_passes("words")

    def test_traces(self):
        for line in ("cd /work/tree", "see https://pypi.org/project/x", "in the previous session", "/root/.cache"):
            self.write("docs/a.md", line + "\n")
            self.assert_caught("words", "docs/a.md:1")


if __name__ == "__main__":
    unittest.main()
