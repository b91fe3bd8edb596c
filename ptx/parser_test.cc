#include "ptx/parser.h"

#include <bit>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ptx/initializer.h"

namespace cuplex::ptx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kHead = ".version 8.3\n.target sm_90\n.address_size 64\n";

Module Parsed(const std::string& text) {
  auto module = Parse(std::string(kHead) + text);
  EXPECT_TRUE(module.ok()) << module.error().sentence << "\n" << text;
  return module.ok() ? *std::move(module) : Module();
}

// A kernel with predicates %p0..3, 32-bit registers %r0..9, 64-bit registers %rd0..9 in that order.
Module Kernel(const std::string& body) {
  return Parsed(
      ".entry k(.param .u64 k_param_0) {\n.reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %rd<10>;\n" + body +
      "\n}");
}
constexpr uint32_t P(uint32_t n) { return n; }
constexpr uint32_t R(uint32_t n) { return 4 + n; }
constexpr uint32_t Rd(uint32_t n) { return 14 + n; }

const Instruction& Only(const Module& module) {
  EXPECT_EQ(module.functions.at(0).instructions.size(), 1u);
  return module.functions.at(0).instructions.at(0);
}

std::string ErrorOf(const std::string& text) {
  auto module = Parse(text);
  EXPECT_FALSE(module.ok()) << text;
  return module.ok() ? "" : module.error().sentence;
}
std::string ErrorIn(const std::string& body) {
  return ErrorOf(std::string(kHead) + ".entry k() {\n" + body + "\n}");
}

TEST(Parser, ReadsTheHeader) {
  auto module = Parse("// c\n.version 7.10\n.target sm_90a, texmode_independent, debug\n.address_size 64\n");
  ASSERT_TRUE(module.ok());
  EXPECT_EQ(module->version_major, 7u);
  EXPECT_EQ(module->version_minor, 10u);
  EXPECT_THAT(module->target, ElementsAre("sm_90a", "texmode_independent"));
  EXPECT_EQ(module->address_size, 64u);
}

TEST(Parser, ReadsGuardsModifiersAndOperands) {
  auto module = Kernel("  @!%p1 ld.relaxed.gpu.global.v2.u32 {%r1, _}, [%rd2+-8];");
  const Instruction& ld = Only(module);
  EXPECT_EQ(ld.opcode, Opcode::kLd);
  EXPECT_EQ(ld.guard, (Guard{P(1), true}));
  EXPECT_THAT(ld.mods, ElementsAre(Mod::kRelaxed, Mod::kGpu, Mod::kSpaceGlobal, Mod::kV2, Mod::kTypeU32));
  EXPECT_EQ(ld.Order(), Mod::kRelaxed);
  EXPECT_EQ(ld.Scope(), Mod::kGpu);
  EXPECT_EQ(ld.SpaceAt(), Space::kGlobal);
  EXPECT_EQ(ld.TypeAt(), Type::kU32);
  EXPECT_EQ(ld.TypeCount(), 1u);
  EXPECT_EQ(ld.VectorWidth(), 2u);
  ASSERT_EQ(ld.operands.size(), 2u);
  EXPECT_EQ(ld.operands[0].kind, OperandKind::kVector);
  EXPECT_THAT(ld.operands[0].parts, ElementsAre(Operand::Register(R(1)), Operand()));
  EXPECT_EQ(ld.operands[1], Operand::RegisterAddress(Rd(2), -8));
  EXPECT_EQ(ld.place.line, 6u);
  EXPECT_EQ(ld.place.column, 9u);
  EXPECT_EQ(module.Text(ld), "ld.relaxed.gpu.global.v2.u32");
}

TEST(Parser, ReadsEveryKindOfOperand) {
  auto one = [](const std::string& text) { return Only(Kernel("foo " + text + ";")).operands.at(0); };
  EXPECT_EQ(one("-1"), Operand::Integer(-1));
  EXPECT_EQ(one("0xffffffffffffffff"), Operand::Integer(-1));
  EXPECT_EQ(one("WARP_SZ"), Operand::Integer(32));
  EXPECT_EQ(one("0f3F800000").bits, 0x3f800000u);
  EXPECT_EQ(one("0f3F800000").kind, OperandKind::kFloat32);
  EXPECT_EQ(one("-1.5").bits, std::bit_cast<uint64_t>(-1.5));
  EXPECT_EQ(one("%tid.y"), Operand::SpecialRegister(Special::kTid, Mod::kY));
  EXPECT_EQ(one("%laneid"), Operand::SpecialRegister(Special::kLaneid));
  EXPECT_EQ(one("%envreg2").special(), static_cast<Special>(static_cast<uint32_t>(Special::kEnvreg0) + 2));
  EXPECT_EQ(one("%clock64").special(), Special::kClock64);
  EXPECT_EQ(one("_").kind, OperandKind::kSink);
  EXPECT_TRUE(one("!%p2").negated);
  EXPECT_EQ(one("%r1.h1").component, Mod::kH1);
  auto selected = Kernel("foo %r1.b3210;");
  EXPECT_EQ(selected.Text(Only(selected).operands[0].component), "b3210");
  EXPECT_EQ(one("[16]").base, BaseKind::kNone);
  EXPECT_EQ(one("[16]").bits, 16u);
  EXPECT_EQ(one("[k_param_0]"), Operand::SymbolAddress(SymbolKind::kLocalVariable, 0));
  EXPECT_EQ(one("[%rd1].unified").component, Mod::kUnified);
  Operand pair = one("%r1|%p3");
  EXPECT_EQ(pair.kind, OperandKind::kPair);
  EXPECT_THAT(pair.parts, ElementsAre(Operand::Register(R(1)), Operand::Register(P(3))));
  Operand texture = one("[%rd1, %rd2, {%r1, %r2}]");
  EXPECT_EQ(texture.kind, OperandKind::kTexture);
  ASSERT_EQ(texture.parts.size(), 3u);
  EXPECT_EQ(texture.parts[0], Operand::RegisterAddress(Rd(1)));
  EXPECT_EQ(texture.parts[1], Operand::Register(Rd(2)));
  EXPECT_EQ(texture.parts[2].kind, OperandKind::kVector);
}

TEST(Parser, ComputesSumsBeforeTheInstructionThatReadsThem) {
  auto module = Kernel(
      "mov.u64 %rd1, 0;\nthere: @%p1 st.u64 [%rd1], %rd2 + 1;\n"
      "mad.lo.u32 %r1, %r2+-8, %r3, %r4+0x10; bra there;");
  const Function& k = module.functions.at(0);
  std::vector<std::string> order;
  for (const Statement& s : k.statements) {
    if (s.kind == StatementKind::kInstruction) order.push_back(module.Text(k.instructions.at(s.index)));
    if (s.kind == StatementKind::kLabel) order.push_back(k.labels.at(s.index).name);
  }
  EXPECT_THAT(
      order, ElementsAre("mov.u64", "there", "add.u64", "st.u64", "add.u32", "add.u32", "mad.lo.u32", "bra"));
  EXPECT_EQ(k.statements.at(k.labels.at(0).statement).kind, StatementKind::kLabel);
  auto sum = [&](uint32_t reg) -> const Instruction& {
    for (const Instruction& in : k.instructions) {
      if (in.opcode == Opcode::kAdd && in.operands.at(0) == Operand::Register(reg)) return in;
    }
    ADD_FAILURE() << "no sum in register " << reg;
    return k.instructions.at(0);
  };
  const Instruction& st = k.instructions.at(1);
  EXPECT_EQ(st.operands.at(0), Operand::RegisterAddress(Rd(1)));
  const Instruction& one = sum(st.operands.at(1).id);
  EXPECT_FALSE(one.guard);
  EXPECT_THAT(one.operands, ElementsAre(st.operands[1], Operand::Register(Rd(2)), Operand::Integer(1)));
  EXPECT_EQ(k.TypeOfRegister(st.operands[1].id), Type::kU64);
  const Instruction& mad = k.instructions.at(2);
  EXPECT_THAT(sum(mad.operands.at(1).id).operands,
              ElementsAre(mad.operands[1], Operand::Register(R(2)), Operand::Integer(-8)));
  EXPECT_EQ(mad.operands.at(2), Operand::Register(R(3)));
  EXPECT_THAT(sum(mad.operands.at(3).id).operands,
              ElementsAre(mad.operands[3], Operand::Register(R(4)), Operand::Integer(16)));

  EXPECT_THAT(ErrorIn(".reg .f32 %f; add.f32 %f, %f + 1, %f;"), HasSubstr("not of floats"));
  EXPECT_THAT(ErrorIn(".reg .b32 %r; mov.u32 %r + 1, %r;"), HasSubstr("found `+`"));
  EXPECT_THAT(ErrorIn(".reg .b32 %r; mov.u32 %r, %tid.x + 1;"), HasSubstr("found `+`"));
  EXPECT_THAT(ErrorIn(".reg .b32 %r; mov.u32 %r, %r + %r;"), HasSubstr("found `%r`"));
}

TEST(Parser, TellsModifiersApart) {
  auto mods = [](const std::string& text) { return Only(Kernel(text + ";")); };
  EXPECT_EQ(mods("setp.ltu.and.f32 %p1|%p2, %r1, %r2, !%p3").Comparison(), Mod::kLtu);
  EXPECT_EQ(mods("setp.lo.u32 %p1, %r1, %r2").Comparison(), Mod::kLo);
  EXPECT_EQ(mods("add.rn.ftz.f32 %r1, %r1, %r2").Rounding(), Mod::kRn);
  EXPECT_EQ(mods("cvt.rzi.s32.f32 %r1, %r2").TypeAt(1), Type::kF32);
  EXPECT_TRUE(mods("mul.wide.s32 %rd1, %r1, 4").Has(Mod::kWide));
  EXPECT_EQ(mods("atom.acq_rel.sys.shared::cta.cas.b32 %r1, [%rd1], %r2, %r3").SpaceAt(), Space::kSharedCta);
  auto copy =
      mods("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%rd1], [%rd2], 16, [%rd3]");
  EXPECT_EQ(copy.SpaceAt(0), Space::kSharedCluster);
  EXPECT_EQ(copy.SpaceAt(1), Space::kGlobal);
  EXPECT_EQ(copy.SpaceAt(2), Space::kNone);
  EXPECT_TRUE(copy.Has(Mod::kMbarrierCompleteTxBytes));
}

TEST(Parser, KeepsUnknownWords) {
  auto module = Kernel("frobnicate.quickly.u32 %r1, %r2;");
  const Instruction& instruction = Only(module);
  EXPECT_GE(instruction.opcode, Opcode::kFirstUnknown);
  EXPECT_EQ(module.Text(instruction.opcode), "frobnicate");
  EXPECT_EQ(module.Text(instruction), "frobnicate.quickly.u32");
  EXPECT_EQ(instruction.TypeAt(), Type::kU32);
}

TEST(Parser, ResolvesNamesByScope) {
  auto module = Parsed(R"(.global .u32 g;
.entry k(.param .u32 p) {
  .reg .b32 %r<5>, a;
  mov.b32 a, %r4;
  { .reg .b32 a, %r<2>; mov.b32 a, %r1; mov.b32 a, %r4; }
  mov.b32 a, %r1;
  mov.b32 a, g;
})");
  const Function& k = module.functions[0];
  auto pair = [&](size_t at) {
    return std::pair(k.instructions[at].operands[0].id, k.instructions[at].operands[1].id);
  };
  EXPECT_EQ(k.register_count, 9u);
  EXPECT_EQ(pair(0), std::pair(5u, 4u));
  EXPECT_EQ(pair(1), std::pair(6u, 8u));
  EXPECT_EQ(pair(2), std::pair(6u, 4u)) << "the inner %r has no %r4";
  EXPECT_EQ(pair(3), std::pair(5u, 1u));
  EXPECT_EQ(k.instructions[4].operands[1].symbol, SymbolKind::kGlobalVariable);
  EXPECT_EQ(k.NameOfRegister(8), "%r1");
  EXPECT_EQ(k.NameOfRegister(5), "a");
}

// NVIDIA's assembler refuses these, or reads them in another way than their spelling says.
TEST(Parser, RefusesNamesThatCouldMeanTwoThings) {
  for (std::string text :
       {".reg .b32 %r<20>; .reg .b64 %r3;", ".reg .b64 %r3; .reg .b32 %r<20>;",
        ".reg .b64 %r03; .reg .b32 %r<8>;", ".reg .b32 %r<20>; .reg .b64 %r1<5>;",
        ".reg .b64 %r1<5>; .reg .b32 %r<20>;", ".reg .b32 %r<3>; .reg .b32 %r<3>;", ".reg .b32 x; x: ret;"}) {
    EXPECT_THAT(ErrorIn(text), HasSubstr("expected a name that this scope does not have yet")) << text;
  }
  EXPECT_THAT(ErrorIn(".reg .b64 %r03; { .reg .b32 %r<8>, x; mov.b32 x, %r03; }"), HasSubstr("found `%r03`"));
  Parsed(".entry k() { .reg .b32 %r<20>; .reg .b64 %r40; .reg .b64 %r3<5>; mov.b64 %r40, %r34; }");
}

TEST(Parser, LetsADeclaredNameHideASpecialRegister) {
  auto module = Parsed(".entry k() { .reg .b32 %tid; mov.b32 %tid, %ntid.x; mov.b32 %tid, %tid; }");
  const auto& code = module.functions[0].instructions;
  EXPECT_EQ(code[0].operands[1].special(), Special::kNtid);
  EXPECT_EQ(code[1].operands[1], Operand::Register(0));
}

TEST(Parser, ResolvesLabelsForwardsAndByScope) {
  auto module = Parsed(R"(.entry k() {
  .reg .pred p;
  bra OUT;
  { @p bra DONE; DONE: }
  { DONE: @!p bra DONE; bra OUT; }
OUT:
  ret;
})");
  const Function& k = module.functions[0];
  ASSERT_EQ(k.labels.size(), 3u);
  EXPECT_EQ(k.instructions[0].operands[0].symbol, SymbolKind::kLabel);
  EXPECT_EQ(k.instructions[0].operands[0].id, 2u);
  EXPECT_EQ(k.instructions[1].operands[0].id, 0u);
  EXPECT_EQ(k.instructions[2].operands[0].id, 1u);
  EXPECT_EQ(k.instructions[3].operands[0].id, 2u);
  EXPECT_EQ(k.statements[k.labels[2].statement], (Statement{StatementKind::kLabel, 2}));
}

TEST(Parser, ReadsCallsTablesAndPrototypes) {
  auto module = Parsed(R"(.extern .func (.param .b32 r) f(.param .b64 a, .param .b32 b);
.func g() { ret; }
.entry k() {
  .reg .b64 fp; .reg .b32 i;
  { .param .b32 r0; .param .b64 a0; .param .b32 b0;
    call.uni (r0), f, (a0, b0);
    proto : .callprototype (.param .b32 _) _ (.param .align 8 .b8 _[16]) .noreturn;
    call (r0), fp, (a0), proto; }
  call g;
  call g, ();
  t: .branchtargets A, B;
  brx.idx i, t;
A: ret;
B: ret;
})");
  const Function& k = module.functions[2];
  CallShape direct = ShapeOfCall(k.instructions[0]);
  ASSERT_TRUE(direct.returns && direct.callee && direct.arguments);
  EXPECT_EQ(direct.callee->symbol, SymbolKind::kFunction);
  EXPECT_EQ(module.functions[direct.callee->id].name, "f");
  EXPECT_EQ(direct.returns->parts.size(), 1u);
  EXPECT_EQ(direct.arguments->parts.size(), 2u);
  EXPECT_EQ(direct.prototype, nullptr);
  CallShape indirect = ShapeOfCall(k.instructions[1]);
  ASSERT_TRUE(indirect.callee && indirect.prototype);
  EXPECT_TRUE(indirect.callee->IsRegister());
  const Prototype& proto = k.prototypes.at(indirect.prototype->id);
  EXPECT_EQ(proto.returns.at(0).type, Type::kB32);
  EXPECT_EQ(proto.parameters.at(0).SizeBytes(), 16u);
  EXPECT_EQ(proto.directives.at(0).name, "noreturn");
  EXPECT_EQ(ShapeOfCall(k.instructions[2]).returns, nullptr);
  EXPECT_EQ(module.functions[ShapeOfCall(k.instructions[2]).callee->id].name, "g");
  EXPECT_TRUE(ShapeOfCall(k.instructions[3]).arguments->parts.empty());
  EXPECT_THAT(k.tables.at(0).targets, ElementsAre(0u, 1u));
  EXPECT_EQ(k.instructions[4].operands[1].symbol, SymbolKind::kTable);
}

TEST(Parser, ReadsVariables) {
  auto module = Parsed(R"(.visible .const[3] .align 16 .v4 .f32 c[2][3];
.extern .shared .align 16 .b8 dynamic[];
.global .attribute(.managed, .unified(1, 2)) .s32 m = -3;
.global .texref t;
.global .u16 a, b[2];)");
  ASSERT_EQ(module.variables.size(), 6u);
  const Variable& c = module.variables[0];
  EXPECT_EQ(c.linkage, Linkage::kVisible);
  EXPECT_EQ(c.space, Space::kConst);
  EXPECT_EQ(c.bank, 3u);
  EXPECT_EQ(c.vector, 4);
  EXPECT_THAT(c.dims, ElementsAre(2u, 3u));
  EXPECT_EQ(c.SizeBytes(), 2u * 3 * 16);
  EXPECT_EQ(c.Alignment(), 16u);
  EXPECT_TRUE(module.variables[1].IsUnsizedArray());
  EXPECT_EQ(module.variables[1].SizeBytes(), 0u);
  EXPECT_TRUE(module.variables[2].HasAttribute("managed"));
  EXPECT_TRUE(module.variables[2].HasAttribute("unified(1,2)"));
  EXPECT_EQ(module.variables[3].type, Type::kTexref);
  EXPECT_EQ(module.variables[4].name, "a");
  EXPECT_EQ(module.variables[5].SizeBytes(), 4u);
  EXPECT_EQ(module.variables[5].Alignment(), 2u);
}

std::vector<std::pair<uint64_t, int64_t>> Elements(const Variable& variable) {
  std::vector<std::pair<uint64_t, int64_t>> out;
  EXPECT_TRUE(ForEachElement(variable, [&](uint64_t at, const Initializer& value) {
                out.emplace_back(at, static_cast<int64_t>(value.bits));
              }).ok());
  return out;
}

TEST(Parser, PlacesInitialisersAsC) {
  using testing::Pair;
  auto module = Parsed(R"(.global .s32 flat[4] = {1, 2};
.global .s32 nested[2][2] = {{1}, {2, -3}};
.global .v2 .s32 pairs[2] = {{5, 6}, {7}};
.global .s32 open[] = {1, 2, 3};
.global .s32 scalar = 9;
.global .s32 nothing[2][2] = {{}, {}};)");
  EXPECT_THAT(Elements(module.variables[0]), ElementsAre(Pair(0, 1), Pair(1, 2)));
  EXPECT_THAT(Elements(module.variables[1]), ElementsAre(Pair(0, 1), Pair(2, 2), Pair(3, -3)));
  EXPECT_THAT(Elements(module.variables[2]), ElementsAre(Pair(0, 5), Pair(1, 6), Pair(2, 7)));
  EXPECT_THAT(module.variables[3].dims, ElementsAre(3u));
  EXPECT_THAT(Elements(module.variables[4]), ElementsAre(Pair(0, 9)));
  EXPECT_THAT(Elements(module.variables[5]), ElementsAre());
  for (std::string text :
       {".global .s32 x[2] = {1, 2, 3};", ".global .s32 x = {{1}};", ".global .s32 x[2] = 1;",
        ".global .s32 x[2][2] = {{1, 2, 3}};", ".global .s32 x = {1};",
        ".global .s32 x[2][2] = {1, 2, 3, 4};", ".global .s32 x[2] = {{1}, {2}};"}) {
    EXPECT_THAT(ErrorOf(std::string(kHead) + text), HasSubstr("initialiser of x")) << text;
  }
}

TEST(Parser, ReadsAddressesInInitialisers) {
  auto module = Parsed(R"(.global .u64 p[4] = {generic(x)+8, x, f, 0};
.global .u8 bytes[2] = {0xff(x), 0xff00(x)};
.global .u32 x[8];
.func f() { ret; })");
  const auto& parts = module.variables[0].initializer->parts;
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[0].kind, Initializer::Kind::kAddress);
  EXPECT_TRUE(parts[0].generic);
  EXPECT_EQ(parts[0].symbol, SymbolKind::kGlobalVariable);
  EXPECT_EQ(parts[0].id, 2u);
  EXPECT_EQ(parts[0].bits, 8u);
  EXPECT_FALSE(parts[1].generic);
  EXPECT_EQ(parts[2].symbol, SymbolKind::kFunction);
  EXPECT_EQ(parts[3].kind, Initializer::Kind::kInteger);
  EXPECT_EQ(module.variables[1].initializer->parts[1].mask, 0xff00u);
  EXPECT_THAT(ErrorOf(std::string(kHead) + ".global .u64 p = nowhere;"), HasSubstr("`nowhere`"));
}

TEST(Parser, ReadsFunctionsAndMergesDeclarations) {
  auto module = Parsed(R"(.func (.param .b32 a) f(.param .b32 b);
.entry k(.param .u64 .ptr .global .align 8 p, .param .align 4 .b8 s[12]) .maxntid 256, 2, 1 .minnctapersm 2
{ .param .b32 x, y; .pragma "nounroll"; call (x), f, (y); }
.visible .func (.reg .b32 r) f(.reg .b32 q, .param .b32 z) .noreturn { mov.b32 r, q; ret; }
.func i();
.alias i, f;)");
  ASSERT_EQ(module.functions.size(), 3u);
  const Function& f = module.functions[0];
  EXPECT_EQ(f.name, "f");
  EXPECT_TRUE(f.has_body);
  EXPECT_EQ(f.linkage, Linkage::kVisible);
  EXPECT_EQ(f.returns.at(0), (Parameter{true, 0}));
  EXPECT_EQ(f.parameters.at(0), (Parameter{true, 1}));
  EXPECT_EQ(f.parameters.at(1), (Parameter{false, 0}));
  EXPECT_TRUE(f.FindDirective("noreturn"));
  EXPECT_FALSE(f.FindDirective("maxntid"));
  const Function& k = module.functions[1];
  EXPECT_TRUE(k.entry);
  EXPECT_THAT(k.FindDirective("maxntid")->values, ElementsAre(256u, 2u, 1u));
  EXPECT_TRUE(k.variables[0].pointer);
  EXPECT_EQ(k.variables[0].pointee, Space::kGlobal);
  EXPECT_EQ(k.variables[0].pointee_align, 8u);
  EXPECT_EQ(k.variables[1].SizeBytes(), 12u);
  EXPECT_EQ(k.body_directives.at(0).strings.at(0), "nounroll");
  EXPECT_THAT(module.aliases, ElementsAre(Alias{2, 0}));
}

TEST(Parser, SkipsDebugData) {
  auto module = Parse(R"(.version 8.0
.target sm_75, debug
.address_size 64
.file 1 "/home/u/x.cu", 1700000000, 99
.entry k() {
  .loc 1 5 3
  .loc 1 6 2, function_name $L__info_string0, inlined_at 1 5 3
  .loc 1 6 2, function_name $L__info_string0+12, inlined_at 1 5 3
$L__tmp0: ret;
}
.file 2 "y.h"
.section .debug_str
{
$L__info_string0:
.b8 95,90,0
.b32 1
}
@@DWARF .section .debug_info
)");
  ASSERT_TRUE(module.ok()) << module.error().sentence;
  EXPECT_EQ(Only(*module).place.line, 9u);
  EXPECT_EQ(Only(*module).place.column, 11u);
}

TEST(Parser, IgnoresTrailingNulAndEmptyStatements) {
  EXPECT_TRUE(Parse(std::string(kHead) + ".entry k() { ; ret;; }" + std::string(3, '\0')).ok());
}

TEST(Parser, SaysWhereWhatAndExpected) {
  EXPECT_EQ(ErrorOf(""),
            "PTX 1:1: found the end of the text, expected `.version`, which begins a PTX module");
  EXPECT_THAT(ErrorOf(".version 8.0 .target debug"), HasSubstr("expected a target"));
  EXPECT_EQ(ErrorOf(".version 8.0\n.target sm_90\nint x;"),
            "PTX 3:1: found `int`, expected a variable, a function or another directive");
  EXPECT_EQ(ErrorIn(".reg .b32 a;\n  add.u32 a, a, b;"),
            "PTX 6:17: found `b`, expected a declared register, variable, function or label");
  EXPECT_THAT(ErrorIn(".reg .b32 %r<3>; mov.b32 %r3, 0;"),
              HasSubstr("found `%r3`, expected a declared register"));
  EXPECT_THAT(ErrorIn("bra nowhere;"), HasSubstr("5:5: found `nowhere`, expected a label"));
  EXPECT_THAT(ErrorIn("{ L: } bra L;"), HasSubstr("found `L`, expected a label"));
  EXPECT_THAT(ErrorIn(".reg .b32 a; @a ret;"), HasSubstr("expected a declared predicate register"));
  EXPECT_THAT(ErrorIn(".reg .b32 a; .reg .f32 a;"), HasSubstr("found `a`, expected a name that this scope"));
  EXPECT_THAT(ErrorIn("L: L: ret;"), HasSubstr("found `L`, expected a name that this scope"));
  EXPECT_THAT(ErrorIn("ret"), HasSubstr("found `}`"));
  EXPECT_THAT(ErrorIn("/* open"), HasSubstr("a comment that does not end"));
  EXPECT_THAT(ErrorIn("call missing, ();"), HasSubstr("found `missing`"));
  EXPECT_THAT(ErrorOf(std::string(kHead) + ".entry k() {"), HasSubstr("found the end of the text"));
  EXPECT_THAT(ErrorOf(std::string(kHead) + ".func f() {} .func f() {}"), HasSubstr("not yet defined"));
  EXPECT_THAT(ErrorOf(std::string(kHead) + ".global .u32 x; .global .u32 x;"),
              HasSubstr("x is declared twice"));
  EXPECT_THAT(ErrorOf(std::string(kHead) + ".reg .u32 x;"), HasSubstr("found `.reg` at file scope"));
}

TEST(Parser, BoundsWhatHostileTextCanAskFor) {
  auto many = [](const std::string& what, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += what;
    return out;
  };
  EXPECT_THAT(ErrorIn(many("{", 100000)), HasSubstr("nested scopes"));
  EXPECT_THAT(ErrorIn("foo " + many("{", 100000)), HasSubstr("nested less deeply"));
  EXPECT_THAT(ErrorIn("foo " + many("[1,", 100000)), HasSubstr("nested less deeply"));
  EXPECT_THAT(ErrorIn("foo " + many("(", 100000)), HasSubstr("nested less deeply"));
  EXPECT_THAT(ErrorIn(".reg .b32 %r<4000000000>;"), HasSubstr("registers"));
  EXPECT_THAT(ErrorIn(".reg .b32 %r<18446744073709551615>;"), HasSubstr("registers"));
  EXPECT_THAT(ErrorIn(".reg .b32 %a<600000>, %b<600000>;"), HasSubstr("registers in a function"));
  EXPECT_THAT(ErrorOf(std::string(kHead) + ".global .b8 x[1099511627777];"), HasSubstr("array size"));
  EXPECT_THAT(ErrorOf(std::string(kHead) + ".global .b8 x[1048576][1048576][1048576];"),
              HasSubstr("at most"));
  EXPECT_THAT(ErrorOf(std::string(kHead) + ".global .b64 x" + many("[1]", 17) + ";"),
              HasSubstr("dimensions"));
  EXPECT_THAT(ErrorOf(std::string(kHead) + ".global .b64 x = " + many("{", 100000)), HasSubstr("nested"));
  EXPECT_THAT(ErrorOf(std::string(kHead) + ".global .align 3 .b64 x;"), HasSubstr("power of two"));
}

}  // namespace
}  // namespace cuplex::ptx
