// Which instruction forms of compiled CUDA programs softcuda takes: the tables in testdata, form by form.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "softcuda/jit/test_rig.h"

namespace cuplex::softcuda {
namespace {

struct Form {
  uint64_t count = 0;
  bool refused = false;  // as the table says
  std::string text;
};

std::vector<Form> Forms(const std::string& file) {
  std::ifstream in(std::string(CUPLEX_SOURCE_DIR "/softcuda/jit/testdata/") + file);
  std::vector<Form> out;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    size_t blank = line.find(' ');
    Form form;
    form.refused = line[0] == '-';
    form.count = std::stoull(line.substr(form.refused));
    form.text = line.substr(blank + 1);
    out.push_back(form);
  }
  return out;
}

constexpr const char* kDeclarations =
    ".const .align 16 .b8 cns[256];\n"
    ".func (.reg .b32 result) helper (.reg .b32 given)\n"
    "{ mov.b32 result, given; ret; }\n";

std::string KernelOf(const Form& form, size_t number) {
  return fmt::format(
      ".visible .entry form{} (.param .align 16 .b8 pa[64], .param .u64 pp)\n{{\n"
      ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<40>; .reg .b64 %rd<16>; .reg .f32 %f<40>;\n"
      ".reg .f64 %fd<40>; .shared .align 128 .b8 smem[4096]; .local .align 16 .b8 loc[64];\n"
      "ld.param.u64 %rd8, [pp];\n{}\nnext: ret;\n}}\n",
      number, form.text);
}

/// The instruction's opcode and modifiers, without types, vector widths and comparisons.
std::string KindOf(const ptx::Module& module, const ptx::Instruction& in) {
  std::string out(module.Text(in.opcode));
  bool compares = in.opcode == ptx::Opcode::kSet || in.opcode == ptx::Opcode::kSetp;
  for (ptx::Mod m : in.mods) {
    if (ptx::TypeOf(m) != ptx::Type::kNone || m == ptx::Mod::kV2 || m == ptx::Mod::kV4) continue;
    if (compares && m == in.Comparison()) continue;
    out += "." + std::string(module.Text(m));
  }
  return out;
}

class Coverage : public TestRig, public testing::WithParamInterface<const char*> {};

TEST_P(Coverage, FormsOfCompiledPrograms) {
  std::vector<Form> forms = Forms(std::string("forms_") + GetParam() + ".txt");
  ASSERT_GT(forms.size(), 400u);
  std::map<std::string, bool> families, kinds;  // whether everything counted of it is taken
  size_t taken = 0;
  uint64_t instructions = 0, instructions_taken = 0;
  for (size_t i = 0; i < forms.size(); ++i) {
    const Form& form = forms[i];
    auto module = ptx::Parse(Header() + kDeclarations + KernelOf(form, i));
    ASSERT_TRUE(module.ok()) << form.text << ": " << module.error().sentence;
    const ptx::Function& fn = module->functions.back();
    ASSERT_EQ(fn.instructions.size(), 3u);
    const ptx::Instruction& in = fn.instructions[1];
    std::string family(module->Text(in.opcode)), kind = KindOf(*module, in);
    auto program = TryCompile(kDeclarations + KernelOf(form, i), {.level = 0});
    EXPECT_TRUE(program.ok() || form.refused) << program.error().sentence;
    if (program.ok() && form.refused) std::printf("taken by now: %s\n", form.text.c_str());
    families.emplace(family, true).first->second &= program.ok();
    kinds.emplace(kind, true).first->second &= program.ok();
    taken += program.ok();
    instructions += form.count;
    instructions_taken += program.ok() ? form.count : 0;
  }
  auto all = [](const std::map<std::string, bool>& m) {
    size_t n = 0;
    for (auto& [name, whole] : m) {
      n += whole;
      if (!whole) std::printf("  not whole: %s\n", name.c_str());
    }
    return n;
  };
  size_t whole_families = all(families), whole_kinds = all(kinds);
  std::printf(
      "%s: families %zu/%zu, forms without types %zu/%zu, forms %zu/%zu, %.4f%% of the instructions "
      "counted\n",
      GetParam(), whole_families, families.size(), whole_kinds, kinds.size(), taken, forms.size(),
      100.0 * static_cast<double>(instructions_taken) / static_cast<double>(instructions));
}

TEST_P(Coverage, FormsAssemble) {
  std::string ptxas = CUPLEX_PTXAS;
  if (ptxas.empty()) GTEST_SKIP() << "no ptxas on this machine";
  std::string arch = GetParam();
  arch.insert(2, "_");
  std::string text = ".version 8.7\n.target " + arch + "\n.address_size 64\n" + kDeclarations;
  std::vector<Form> forms = Forms(std::string("forms_") + GetParam() + ".txt");
  for (size_t i = 0; i < forms.size(); ++i) text += KernelOf(forms[i], i);
  std::string directory = testing::TempDir() + "/cuplex_forms_XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  std::ofstream(directory + "/forms.ptx") << text;
  std::string command =
      fmt::format("'{}' -O0 -arch={} -o '{}/out' '{}/forms.ptx'", ptxas, arch, directory, directory);
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::filesystem::remove_all(directory);
}

INSTANTIATE_TEST_SUITE_P(Tables, Coverage, testing::Values("sm75", "sm90"));

}  // namespace
}  // namespace cuplex::softcuda
