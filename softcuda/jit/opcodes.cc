#include "softcuda/jit/opcodes.h"

#include <algorithm>
#include <array>
#include <vector>

#include "softcuda/jit/families.h"

namespace cuplex::softcuda {
namespace {

using ptx::Mod;
using ptx::Opcode;

using Mods = std::vector<Mod>;

const Mods kNothing = {};
const Mods kFloat = {Mod::kRn, Mod::kRz, Mod::kRm, Mod::kRp, Mod::kFtz, Mod::kSat, Mod::kCc};
const Mods kMultiply = {Mod::kRn,  Mod::kRz, Mod::kRm, Mod::kRp,   Mod::kFtz,
                        Mod::kSat, Mod::kLo, Mod::kHi, Mod::kWide, Mod::kCc};
const Mods kFused = {Mod::kRn, Mod::kRz, Mod::kRm, Mod::kRp, Mod::kFtz, Mod::kSat, Mod::kRelu};
const Mods kDivide = {Mod::kRn, Mod::kRz, Mod::kRm, Mod::kRp, Mod::kFtz, Mod::kApprox, Mod::kFull};
const Mods kMinMax = {Mod::kXorsign, Mod::kAbs, Mod::kFtz, Mod::kNan, Mod::kRelu};
const Mods kFtz = {Mod::kFtz};
const Mods kApprox = {Mod::kApprox, Mod::kFtz};
const Mods kLoHi = {Mod::kLo, Mod::kHi};
const Mods kLoHiSat = {Mod::kLo, Mod::kHi, Mod::kSat};
const Mods kCarry = {Mod::kLo, Mod::kHi, Mod::kCc};
const Mods kCompare = {Mod::kEq,  Mod::kNe,  Mod::kLt,  Mod::kLe,  Mod::kGt,  Mod::kGe,
                       Mod::kLo,  Mod::kLs,  Mod::kHi,  Mod::kHs,  Mod::kEqu, Mod::kNeu,
                       Mod::kLtu, Mod::kLeu, Mod::kGtu, Mod::kGeu, Mod::kNum, Mod::kNanu,
                       Mod::kAnd, Mod::kOr,  Mod::kXor, Mod::kFtz};
const Mods kConvert = {Mod::kRn,  Mod::kRz,  Mod::kRm,  Mod::kRp,  Mod::kRna,  Mod::kRni,       Mod::kRzi,
                       Mod::kRmi, Mod::kRpi, Mod::kFtz, Mod::kSat, Mod::kRelu, Mod::kSatfinite, Mod::kPack};
const Mods kCacheAndOrder = {Mod::kWeak,
                             Mod::kVolatile,
                             Mod::kRelaxed,
                             Mod::kAcquire,
                             Mod::kRelease,
                             Mod::kMmio,
                             Mod::kCta,
                             Mod::kCluster,
                             Mod::kGpu,
                             Mod::kSys,
                             Mod::kCa,
                             Mod::kCg,
                             Mod::kCs,
                             Mod::kLu,
                             Mod::kCv,
                             Mod::kWb,
                             Mod::kWt,
                             Mod::kNc,
                             Mod::kL1EvictNormal,
                             Mod::kL1EvictLast,
                             Mod::kL1EvictFirst,
                             Mod::kL1EvictUnchanged,
                             Mod::kL1NoAllocate,
                             Mod::kL2EvictLast,
                             Mod::kL2EvictNormal,
                             Mod::kL2EvictFirst,
                             Mod::kL2x64B,
                             Mod::kL2x128B,
                             Mod::kL2x256B,
                             Mod::kV2,
                             Mod::kV4,
                             Mod::kV8,
                             Mod::kUnified,
                             Mod::kL2EvictUnchanged,
                             Mod::kL2CacheHint};
const Mods kStore = [] {
  Mods all = kCacheAndOrder;
  for (Mod m : {Mod::kBulk, Mod::kAsync, Mod::kMbarrierCompleteTxBytes}) all.push_back(m);
  return all;
}();
const Mods kAtomic = {Mod::kRelaxed, Mod::kAcquire,
                      Mod::kRelease, Mod::kAcqRel,
                      Mod::kSc,      Mod::kCta,
                      Mod::kCluster, Mod::kGpu,
                      Mod::kSys,     Mod::kAnd,
                      Mod::kOr,      Mod::kXor,
                      Mod::kAdd,     Mod::kMin,
                      Mod::kMax,     Mod::kInc,
                      Mod::kDec,     Mod::kCas,
                      Mod::kExch,    Mod::kNoftz,
                      Mod::kV2,      Mod::kV4,
                      Mod::kV8,      Mod::kL2CacheHint,
                      Mod::kAsync,   Mod::kMbarrierCompleteTxBytes};
const Mods kFences = {Mod::kCta,
                      Mod::kCluster,
                      Mod::kGpu,
                      Mod::kSys,
                      Mod::kGl,
                      Mod::kSc,
                      Mod::kAcqRel,
                      Mod::kAcquire,
                      Mod::kRelease,
                      Mod::kProxyAlias,
                      Mod::kProxy,
                      Mod::kAlias,
                      Mod::kMbarrierInit,
                      Mod::kAsync,
                      Mod::kTensormap,
                      Mod::kTensormapGeneric,
                      Mod::kAsyncGeneric,
                      Mod::kSyncRestrictSharedCta,
                      Mod::kSyncRestrictSharedCluster};
const Mods kBarriers = {Mod::kSync, Mod::kArrive,  Mod::kRed,     Mod::kWarp,   Mod::kAligned,
                        Mod::kCta,  Mod::kPopc,    Mod::kAnd,     Mod::kOr,     Mod::kCluster,
                        Mod::kWait, Mod::kAcquire, Mod::kRelease, Mod::kRelaxed};
const Mods kShuffle = {Mod::kSync, Mod::kUp, Mod::kDown, Mod::kBfly, Mod::kIdx};
const Mods kVote = {Mod::kSync, Mod::kAll, Mod::kAny, Mod::kUni, Mod::kBallot};
const Mods kMatch = {Mod::kSync, Mod::kAny, Mod::kAll};
const Mods kRedux = {Mod::kAbs, Mod::kNan, Mod::kSync, Mod::kAdd, Mod::kMin,
                     Mod::kMax, Mod::kAnd, Mod::kOr,   Mod::kXor};
const Mods kSync = {Mod::kSync};
const Mods kUniform = {Mod::kUni};
const Mods kIndexed = {Mod::kIdx, Mod::kUni};
const Mods kTo = {Mod::kTo};
const Mods kShiftamt = {Mod::kShiftamt};
const Mods kWrapClamp = {Mod::kWrap, Mod::kClamp, Mod::kL, Mod::kR};
const Mods kPermute = {Mod::kF4e, Mod::kB4e, Mod::kRc8, Mod::kEcl, Mod::kEcr, Mod::kRc16};
const Mods kTest = {Mod::kFinite,     Mod::kInfinite, Mod::kNumber,
                    Mod::kNotanumber, Mod::kNormal,   Mod::kSubnormal};
const Mods kPrefetch = {Mod::kTensormap, Mod::kL1, Mod::kL2, Mod::kL2EvictLast, Mod::kL2EvictNormal};
const Mods kLogic = {Mod::kAnd, Mod::kOr, Mod::kXor};
const Mods kDepend = {Mod::kWait, Mod::kLaunchDependents};

const Mods kVideo = {Mod::kSat, Mod::kAdd};
const Mods kScalarVideo = {Mod::kSat,   Mod::kAdd, Mod::kMin,  Mod::kMax,  Mod::kWrap,
                           Mod::kClamp, Mod::kPo,  Mod::kShr7, Mod::kShr15};
const Mods kCompareVideo = {Mod::kEq, Mod::kNe,  Mod::kLt,  Mod::kLe, Mod::kGt,
                            Mod::kGe, Mod::kAdd, Mod::kMin, Mod::kMax};
const Mods kCopyAsync = {Mod::kAsync,
                         Mod::kCa,
                         Mod::kCg,
                         Mod::kL2x64B,
                         Mod::kL2x128B,
                         Mod::kL2x256B,
                         Mod::kCommitGroup,
                         Mod::kWaitGroup,
                         Mod::kWaitAll,
                         Mod::kMbarrier,
                         Mod::kArrive,
                         Mod::kNoinc,
                         Mod::kBulk,
                         Mod::kBulkGroup,
                         Mod::kRead,
                         Mod::kMbarrierCompleteTxBytes,
                         Mod::kMulticastCluster,
                         Mod::kL2CacheHint,
                         Mod::kPrefetch,
                         Mod::kL2,
                         Mod::kReduce,
                         Mod::kAdd,
                         Mod::kMin,
                         Mod::kMax,
                         Mod::kInc,
                         Mod::kDec,
                         Mod::kAnd,
                         Mod::kOr,
                         Mod::kXor,
                         Mod::kNoftz,
                         Mod::kTensor,
                         Mod::kCpMask};
const Mods kMemoryBarrier = {Mod::kInit,         Mod::kInval,    Mod::kArrive,   Mod::kArriveDrop,
                             Mod::kNoComplete,   Mod::kTestWait, Mod::kTryWait,  Mod::kParity,
                             Mod::kPendingCount, Mod::kRelease,  Mod::kAcquire,  Mod::kRelaxed,
                             Mod::kCta,          Mod::kCluster,  Mod::kExpectTx, Mod::kCompleteTx};
const Mods kMultiplyMatrix = {
    Mod::kMma,      Mod::kSync,      Mod::kAligned,   Mod::kRow,      Mod::kCol,     Mod::kSatfinite,
    Mod::kRn,       Mod::kRz,        Mod::kRm,        Mod::kRp,       Mod::kAnd,     Mod::kXor,
    Mod::kPopc,     Mod::kLoad,      Mod::kStore,     Mod::kA,        Mod::kB,       Mod::kC,
    Mod::kD,        Mod::kM16n16k16, Mod::kM32n8k16,  Mod::kM8n32k16, Mod::kM8n8k4,  Mod::kM16n16k8,
    Mod::kM8n8k32,  Mod::kM8n8k128,  Mod::kM8n8k16,   Mod::kM16n8k4,  Mod::kM16n8k8, Mod::kM16n8k16,
    Mod::kM16n8k32, Mod::kM16n8k64,  Mod::kM16n8k128, Mod::kM16n8k256};
const Mods kMoveMatrix = {Mod::kSync, Mod::kAligned, Mod::kM8n8, Mod::kX1, Mod::kX2, Mod::kX4, Mod::kTrans};
const Mods kTexture = {Mod::kD1,    Mod::kD2, Mod::kD3, Mod::kA1d,  Mod::kA2d,   Mod::kCube,
                       Mod::kAcube, Mod::kV2, Mod::kV4, Mod::kBase, Mod::kLevel, Mod::kGrad};
const Mods kGather = {Mod::kR,   Mod::kG,    Mod::kB,     Mod::kA, Mod::kD2,
                      Mod::kA2d, Mod::kCube, Mod::kAcube, Mod::kV4};
const Mods kTextureQuery = {
    Mod::kWidth,      Mod::kHeight,           Mod::kDepth,     Mod::kChannelDataType, Mod::kChannelOrder,
    Mod::kArraySize,  Mod::kNormalizedCoords, Mod::kLevel,     Mod::kNumMipmapLevels, Mod::kNumSamples,
    Mod::kFilterMode, Mod::kAddrMode0,        Mod::kAddrMode1, Mod::kAddrMode2,       Mod::kMemoryLayout};
const Mods kSurface = {Mod::kB,   Mod::kP,   Mod::kD1,  Mod::kD2,   Mod::kD3,    Mod::kA1d,
                       Mod::kA2d, Mod::kCa,  Mod::kCg,  Mod::kCs,   Mod::kCv,    Mod::kWb,
                       Mod::kWt,  Mod::kV2,  Mod::kV4,  Mod::kTrap, Mod::kClamp, Mod::kZero,
                       Mod::kAdd, Mod::kMin, Mod::kMax, Mod::kAnd,  Mod::kOr};
const Mods kCachePolicy = {Mod::kFractional,   Mod::kRange,           Mod::kCvt,
                           Mod::kL2,           Mod::kL2EvictLast,     Mod::kL2EvictNormal,
                           Mod::kL2EvictFirst, Mod::kL2EvictUnchanged};
const Mods kRegisters = {Mod::kInc, Mod::kDec, Mod::kSync, Mod::kAligned};
const Mods kMasked = {Mod::kMask};
constexpr bool kWrites = true, kReads = false, kWaits = true;

const std::vector<OpcodeRow>& Rows() {
  static const std::vector<OpcodeRow> rows = [] {
    std::vector<OpcodeRow> r = {
        {Opcode::kAbs, EmitAbs, kWrites, false, kFtz},
        {Opcode::kActivemask, EmitActivemask, kWrites, kWaits, kNothing},
        {Opcode::kAdd, EmitAdd, kWrites, false, kFloat},
        {Opcode::kAddc, EmitAdd, kWrites, false, kFloat},
        {Opcode::kAlloca, EmitAlloca, kWrites, false, kNothing},
        {Opcode::kAnd, EmitLogic, kWrites, false, kNothing},
        {Opcode::kApplypriority, EmitNothing, kReads, false, kCachePolicy},
        {Opcode::kAtom, EmitAtom, kWrites, false, kAtomic},
        {Opcode::kBar, EmitBarrier, kWrites, kWaits, kBarriers},
        {Opcode::kBarrier, EmitBarrier, kWrites, kWaits, kBarriers},
        {Opcode::kBfe, EmitBfe, kWrites, false, kNothing},
        {Opcode::kBfi, EmitBfi, kWrites, false, kNothing},
        {Opcode::kBfind, EmitBfind, kWrites, false, kShiftamt},
        {Opcode::kBmsk, EmitBmsk, kWrites, false, kWrapClamp},
        {Opcode::kBra, EmitBra, kReads, false, kUniform},
        {Opcode::kBrev, EmitBitCount, kWrites, false, kNothing},
        {Opcode::kBrkpt, EmitTrap, kReads, false, kNothing},
        {Opcode::kBrx, EmitBrx, kReads, false, kIndexed},
        {Opcode::kCall, EmitCall, kReads, false, kUniform},
        {Opcode::kClz, EmitBitCount, kWrites, false, kNothing},
        {Opcode::kCnot, EmitNot, kWrites, false, kNothing},
        {Opcode::kCopysign, EmitCopysign, kWrites, false, kNothing},
        {Opcode::kCos, EmitMath, kWrites, false, kApprox},
        {Opcode::kCp, EmitCp, kReads, false, kCopyAsync},
        {Opcode::kCreatepolicy, EmitCreatepolicy, kWrites, false, kCachePolicy},
        {Opcode::kCvt, EmitCvt, kWrites, false, kConvert},
        {Opcode::kCvta, EmitCvta, kWrites, false, kTo},
        {Opcode::kDiscard, EmitNothing, kReads, false, kCachePolicy},
        {Opcode::kDiv, EmitDiv, kWrites, false, kDivide},
        {Opcode::kDp2a, EmitDotProduct, kWrites, false, kLoHi},
        {Opcode::kDp4a, EmitDotProduct, kWrites, false, kNothing},
        {Opcode::kElect, EmitElect, kWrites, kWaits, kSync},
        {Opcode::kEx2, EmitMath, kWrites, false, kApprox},
        {Opcode::kExit, EmitExit, kReads, false, kNothing},
        {Opcode::kFence, EmitFence, kReads, false, kFences},
        {Opcode::kFma, EmitFma, kWrites, false, kFused},
        {Opcode::kFns, EmitFns, kWrites, false, kNothing},
        {Opcode::kGetctarank, EmitMapa, kWrites, false, kNothing},
        {Opcode::kGriddepcontrol, EmitNothing, kReads, false, kDepend},
        {Opcode::kIsspacep, EmitIsspacep, kWrites, false, kNothing},
        {Opcode::kLd, EmitLd, kWrites, false, kCacheAndOrder},
        {Opcode::kLdmatrix, EmitMatrix, kWrites, kWaits, kMoveMatrix},
        {Opcode::kLdu, EmitLd, kWrites, false, kCacheAndOrder},
        {Opcode::kLg2, EmitMath, kWrites, false, kApprox},
        {Opcode::kLop3, EmitLop3, kWrites, false, kLogic},
        {Opcode::kMad, EmitMad, kWrites, false, kMultiply},
        {Opcode::kMad24, EmitMad24, kWrites, false, kLoHiSat},
        {Opcode::kMadc, EmitMad, kWrites, false, kCarry},
        {Opcode::kMapa, EmitMapa, kWrites, false, kNothing},
        {Opcode::kMatch, EmitMatch, kWrites, kWaits, kMatch},
        {Opcode::kMax, EmitMinMax, kWrites, false, kMinMax},
        {Opcode::kMbarrier, EmitMbarrier, kWrites, false, kMemoryBarrier},
        {Opcode::kMembar, EmitFence, kReads, false, kFences},
        {Opcode::kMin, EmitMinMax, kWrites, false, kMinMax},
        {Opcode::kMma, EmitMatrix, kWrites, kWaits, kMultiplyMatrix},
        {Opcode::kMov, EmitMov, kWrites, false, kNothing},
        {Opcode::kMovmatrix, EmitMatrix, kWrites, kWaits, kMoveMatrix},
        {Opcode::kMul, EmitMul, kWrites, false, kMultiply},
        {Opcode::kMul24, EmitMad24, kWrites, false, kLoHi},
        {Opcode::kNanosleep, EmitNanosleep, kReads, false, kNothing},
        {Opcode::kNeg, EmitNeg, kWrites, false, kFtz},
        {Opcode::kNot, EmitNot, kWrites, false, kNothing},
        {Opcode::kOr, EmitLogic, kWrites, false, kNothing},
        {Opcode::kPmevent, EmitNothing, kReads, false, kMasked},
        {Opcode::kPopc, EmitBitCount, kWrites, false, kNothing},
        {Opcode::kPrefetch, EmitNothing, kReads, false, kPrefetch},
        {Opcode::kPrefetchu, EmitNothing, kReads, false, kPrefetch},
        {Opcode::kPrmt, EmitPrmt, kWrites, false, kPermute},
        {Opcode::kRcp, EmitRoot, kWrites, false, kDivide},
        {Opcode::kRed, EmitAtom, kReads, false, kAtomic},
        {Opcode::kRedux, EmitRedux, kWrites, kWaits, kRedux},
        {Opcode::kRem, EmitDiv, kWrites, false, kNothing},
        {Opcode::kRet, EmitRet, kReads, false, kUniform},
        {Opcode::kRsqrt, EmitRoot, kWrites, false, kApprox},
        {Opcode::kSad, EmitSad, kWrites, false, kNothing},
        {Opcode::kSelp, EmitSelp, kWrites, false, kNothing},
        {Opcode::kSet, EmitSet, kWrites, false, kCompare},
        {Opcode::kSetmaxnreg, EmitNothing, kReads, false, kRegisters},
        {Opcode::kSetp, EmitSet, kWrites, false, kCompare},
        {Opcode::kShf, EmitShf, kWrites, false, kWrapClamp},
        {Opcode::kShfl, EmitShfl, kWrites, kWaits, kShuffle},
        {Opcode::kShl, EmitShift, kWrites, false, kNothing},
        {Opcode::kShr, EmitShift, kWrites, false, kNothing},
        {Opcode::kSin, EmitMath, kWrites, false, kApprox},
        {Opcode::kSlct, EmitSlct, kWrites, false, kFtz},
        {Opcode::kSqrt, EmitRoot, kWrites, false, kDivide},
        {Opcode::kSt, EmitSt, kReads, false, kStore},
        {Opcode::kStackrestore, EmitAlloca, kReads, false, kNothing},
        {Opcode::kStacksave, EmitAlloca, kWrites, false, kNothing},
        {Opcode::kStmatrix, EmitMatrix, kReads, kWaits, kMoveMatrix},
        {Opcode::kSub, EmitSub, kWrites, false, kFloat},
        {Opcode::kSubc, EmitSub, kWrites, false, kFloat},
        {Opcode::kSuld, EmitSuld, kWrites, false, kSurface},
        {Opcode::kSuq, EmitTextureQuery, kWrites, false, kTextureQuery},
        {Opcode::kSured, EmitSured, kReads, false, kSurface},
        {Opcode::kSust, EmitSust, kReads, false, kSurface},
        {Opcode::kSzext, EmitSzext, kWrites, false, kWrapClamp},
        {Opcode::kTanh, EmitMath, kWrites, false, kApprox},
        {Opcode::kTestp, EmitTestp, kWrites, false, kTest},
        {Opcode::kTex, EmitTex, kWrites, false, kTexture},
        {Opcode::kTld4, EmitTld4, kWrites, false, kGather},
        {Opcode::kTrap, EmitTrap, kReads, false, kNothing},
        {Opcode::kTxq, EmitTextureQuery, kWrites, false, kTextureQuery},
        {Opcode::kVabsdiff, EmitScalarVideo, kWrites, false, kScalarVideo},
        {Opcode::kVabsdiff2, EmitVideo, kWrites, false, kVideo},
        {Opcode::kVabsdiff4, EmitVideo, kWrites, false, kVideo},
        {Opcode::kVadd, EmitScalarVideo, kWrites, false, kScalarVideo},
        {Opcode::kVadd2, EmitVideo, kWrites, false, kVideo},
        {Opcode::kVadd4, EmitVideo, kWrites, false, kVideo},
        {Opcode::kVavrg2, EmitVideo, kWrites, false, kVideo},
        {Opcode::kVavrg4, EmitVideo, kWrites, false, kVideo},
        {Opcode::kVmad, EmitScalarVideo, kWrites, false, kScalarVideo},
        {Opcode::kVmax, EmitScalarVideo, kWrites, false, kScalarVideo},
        {Opcode::kVmax2, EmitVideo, kWrites, false, kVideo},
        {Opcode::kVmax4, EmitVideo, kWrites, false, kVideo},
        {Opcode::kVmin, EmitScalarVideo, kWrites, false, kScalarVideo},
        {Opcode::kVmin2, EmitVideo, kWrites, false, kVideo},
        {Opcode::kVmin4, EmitVideo, kWrites, false, kVideo},
        {Opcode::kVset, EmitScalarVideo, kWrites, false, kCompareVideo},
        {Opcode::kVset2, EmitVideo, kWrites, false, kCompareVideo},
        {Opcode::kVset4, EmitVideo, kWrites, false, kCompareVideo},
        {Opcode::kVshl, EmitScalarVideo, kWrites, false, kScalarVideo},
        {Opcode::kVshr, EmitScalarVideo, kWrites, false, kScalarVideo},
        {Opcode::kVsub, EmitScalarVideo, kWrites, false, kScalarVideo},
        {Opcode::kVsub2, EmitVideo, kWrites, false, kVideo},
        {Opcode::kVsub4, EmitVideo, kWrites, false, kVideo},
        {Opcode::kVote, EmitVote, kWrites, kWaits, kVote},
        {Opcode::kWmma, EmitMatrix, kWrites, kWaits, kMultiplyMatrix},
        {Opcode::kXor, EmitLogic, kWrites, false, kNothing},
    };
    return r;
  }();
  return rows;
}

}  // namespace

const OpcodeRow* FindOpcodeRow(ptx::Opcode opcode) {
  static const auto by_opcode = [] {
    std::array<const OpcodeRow*, static_cast<size_t>(Opcode::kCount)> table = {};
    for (const OpcodeRow& row : Rows()) table[static_cast<size_t>(row.opcode)] = &row;
    return table;
  }();
  return opcode < Opcode::kCount ? by_opcode[static_cast<size_t>(opcode)] : nullptr;
}

std::optional<std::string> WhyNot(const ptx::Module& module, const ptx::Instruction& in) {
  auto because = [&](std::string_view why) {
    return fmt::format("line {}: `{}` {}", in.place.line, module.Text(in), why);
  };
  const OpcodeRow* row = FindOpcodeRow(in.opcode);
  if (!row) return because("is not supported by softcuda");
  // barrier.cluster.arrive shares its row with bar.red, which writes.
  if (row->writes && in.operands.empty() && !in.Has(Mod::kCluster)) return because("has no operands");
  for (Mod mod : in.mods) {
    if (ptx::TypeOf(mod) != ptx::Type::kNone || ptx::SpaceOf(mod) != ptx::Space::kNone) continue;
    if (std::find(row->mods.begin(), row->mods.end(), mod) == row->mods.end()) {
      return because(
          fmt::format("has the modifier `.{}`, which softcuda does not support", module.Text(mod)));
    }
  }
  return std::nullopt;
}

std::span<const OpcodeRow> OpcodeRows() { return Rows(); }

}  // namespace cuplex::softcuda
