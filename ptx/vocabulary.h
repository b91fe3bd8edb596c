// The words of PTX: types, state spaces, opcode families, modifiers, special registers, each an enum with its
// spelling. Pure data; any thread.
//
// A word this file does not know is not an error: the parser interns it in the module (Module::words) under
// an id at or above the enum's kFirstUnknown, and Module::Text() gives its spelling back. So a consumer that
// meets an opcode or a modifier it cannot carry can refuse it by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cuplex::ptx {

// Fundamental and packed types: X(id, spelling, bits). The opaque handles have 64 bits.
// clang-format off
#define CUPLEX_PTX_TYPES(X) \
  X(Pred, "pred", 1) X(B1, "b1", 1) X(B4, "b4", 4) X(S4, "s4", 4) X(U4, "u4", 4) X(B8, "b8", 8) \
  X(B16, "b16", 16) X(B32, "b32", 32) X(B64, "b64", 64) X(B128, "b128", 128) X(U8, "u8", 8) \
  X(U16, "u16", 16) X(U32, "u32", 32) X(U64, "u64", 64) X(S8, "s8", 8) X(S16, "s16", 16) X(S32, "s32", 32) \
  X(S64, "s64", 64) X(F16, "f16", 16) X(Bf16, "bf16", 16) X(Tf32, "tf32", 32) X(F32, "f32", 32) \
  X(F64, "f64", 64) X(F16x2, "f16x2", 32) X(Bf16x2, "bf16x2", 32) X(F32x2, "f32x2", 64) \
  X(U16x2, "u16x2", 32) X(S16x2, "s16x2", 32) X(U8x4, "u8x4", 32) X(S8x4, "s8x4", 32) X(E4m3, "e4m3", 8) \
  X(E5m2, "e5m2", 8) X(E4m3x2, "e4m3x2", 16) X(E5m2x2, "e5m2x2", 16) X(E4m3x4, "e4m3x4", 32) \
  X(E5m2x4, "e5m2x4", 32) X(E3m2, "e3m2", 8) X(E2m3, "e2m3", 8) X(E2m1, "e2m1", 4) X(E3m2x2, "e3m2x2", 16) \
  X(E2m3x2, "e2m3x2", 16) X(E2m1x2, "e2m1x2", 8) X(E3m2x4, "e3m2x4", 32) X(E2m3x4, "e2m3x4", 32) \
  X(E2m1x4, "e2m1x4", 16) X(Ue8m0, "ue8m0", 8) X(Ue4m3, "ue4m3", 8) X(Ue8m0x2, "ue8m0x2", 16) \
  X(B6x16P32, "b6x16_p32", 128) X(B4x16P64, "b4x16_p64", 128) X(Texref, "texref", 64) \
  X(Samplerref, "samplerref", 64) X(Surfref, "surfref", 64)
// clang-format on

// State spaces, as declarations and memory instructions spell them: X(id, spelling).
// clang-format off
#define CUPLEX_PTX_SPACES(X) \
  X(Reg, "reg") X(Sreg, "sreg") X(Const, "const") X(Global, "global") X(Local, "local") X(Param, "param") \
  X(Shared, "shared") X(Tex, "tex") X(SharedCta, "shared::cta") X(SharedCluster, "shared::cluster") \
  X(ParamEntry, "param::entry") X(ParamFunc, "param::func")
// clang-format on

// Opcode families: the word before the first dot. X(id, spelling).
// clang-format off
#define CUPLEX_PTX_OPCODES(X) \
  X(Abs, "abs") X(Activemask, "activemask") X(Add, "add") X(Addc, "addc") X(Alloca, "alloca") \
  X(And, "and") X(Applypriority, "applypriority") X(Atom, "atom") X(Bar, "bar") X(Barrier, "barrier") \
  X(Bfe, "bfe") X(Bfi, "bfi") X(Bfind, "bfind") X(Bmsk, "bmsk") X(Bra, "bra") X(Brev, "brev") \
  X(Brkpt, "brkpt") X(Brx, "brx") X(Call, "call") X(Clusterlaunchcontrol, "clusterlaunchcontrol") \
  X(Clz, "clz") X(Cnot, "cnot") X(Copysign, "copysign") X(Cos, "cos") X(Cp, "cp") \
  X(Createpolicy, "createpolicy") X(Cvt, "cvt") X(Cvta, "cvta") X(Discard, "discard") X(Div, "div") \
  X(Dp2a, "dp2a") X(Dp4a, "dp4a") X(Elect, "elect") X(Ex2, "ex2") X(Exit, "exit") X(Fence, "fence") \
  X(Fma, "fma") X(Fns, "fns") X(Getctarank, "getctarank") X(Griddepcontrol, "griddepcontrol") \
  X(Isspacep, "isspacep") X(Istypep, "istypep") X(Ld, "ld") X(Ldmatrix, "ldmatrix") X(Ldu, "ldu") \
  X(Lg2, "lg2") X(Lop3, "lop3") X(Mad, "mad") X(Mad24, "mad24") X(Madc, "madc") X(Mapa, "mapa") \
  X(Match, "match") X(Max, "max") X(Mbarrier, "mbarrier") X(Membar, "membar") X(Min, "min") X(Mma, "mma") \
  X(Mov, "mov") X(Movmatrix, "movmatrix") X(Mul, "mul") X(Mul24, "mul24") X(Multimem, "multimem") \
  X(Nanosleep, "nanosleep") X(Neg, "neg") X(Not, "not") X(Or, "or") X(Pmevent, "pmevent") X(Popc, "popc") \
  X(Prefetch, "prefetch") X(Prefetchu, "prefetchu") X(Prmt, "prmt") X(Rcp, "rcp") X(Red, "red") \
  X(Redux, "redux") X(Rem, "rem") X(Ret, "ret") X(Rsqrt, "rsqrt") X(Sad, "sad") X(Selp, "selp") \
  X(Set, "set") X(Setmaxnreg, "setmaxnreg") X(Setp, "setp") X(Shf, "shf") X(Shfl, "shfl") X(Shl, "shl") \
  X(Shr, "shr") X(Sin, "sin") X(Slct, "slct") X(Sqrt, "sqrt") X(St, "st") X(Stackrestore, "stackrestore") \
  X(Stacksave, "stacksave") X(Stmatrix, "stmatrix") X(Sub, "sub") X(Subc, "subc") X(Suld, "suld") \
  X(Suq, "suq") X(Sured, "sured") X(Sust, "sust") X(Szext, "szext") X(Tanh, "tanh") X(Tcgen05, "tcgen05") \
  X(Tensormap, "tensormap") X(Testp, "testp") X(Tex, "tex") X(Tld4, "tld4") X(Trap, "trap") X(Txq, "txq") \
  X(Vabsdiff, "vabsdiff") X(Vabsdiff2, "vabsdiff2") X(Vabsdiff4, "vabsdiff4") X(Vadd, "vadd") \
  X(Vadd2, "vadd2") X(Vadd4, "vadd4") X(Vavrg2, "vavrg2") X(Vavrg4, "vavrg4") X(Vmad, "vmad") \
  X(Vmax, "vmax") X(Vmax2, "vmax2") X(Vmax4, "vmax4") X(Vmin, "vmin") X(Vmin2, "vmin2") \
  X(Vmin4, "vmin4") X(Vote, "vote") X(Vset, "vset") X(Vset2, "vset2") X(Vset4, "vset4") \
  X(Vshl, "vshl") X(Vshr, "vshr") X(Vsub, "vsub") X(Vsub2, "vsub2") X(Vsub4, "vsub4") \
  X(Wgmma, "wgmma") X(Wmma, "wmma") X(Xor, "xor")
// clang-format on

// Modifiers that are neither types nor state spaces: X(id, spelling).
// clang-format off
#define CUPLEX_PTX_MODIFIERS(X) \
  /* rounding */ \
  X(Rn, "rn") X(Rz, "rz") X(Rm, "rm") X(Rp, "rp") X(Rna, "rna") X(Rs, "rs") X(Rni, "rni") X(Rzi, "rzi") \
  X(Rmi, "rmi") X(Rpi, "rpi") \
  /* arithmetic */ \
  X(Ftz, "ftz") X(Sat, "sat") X(Satfinite, "satfinite") X(Relu, "relu") X(Noftz, "noftz") X(Oob, "oob") \
  X(Approx, "approx") X(Full, "full") X(Nan, "NaN") X(Xorsign, "xorsign") X(Abs, "abs") X(Lo, "lo") \
  X(Hi, "hi") X(Wide, "wide") X(Cc, "cc") X(Carry, "carry") X(Shiftamt, "shiftamt") X(Clamp, "clamp") \
  X(Wrap, "wrap") X(L, "l") X(R, "r") X(Scaled, "scaled") \
  /* comparison */ \
  X(Eq, "eq") X(Ne, "ne") X(Lt, "lt") X(Le, "le") X(Gt, "gt") X(Ge, "ge") X(Ls, "ls") X(Hs, "hs") \
  X(Equ, "equ") X(Neu, "neu") X(Ltu, "ltu") X(Leu, "leu") X(Gtu, "gtu") X(Geu, "geu") X(Num, "num") \
  X(Nanu, "nan") X(And, "and") X(Or, "or") X(Xor, "xor") \
  /* test of numbers */ \
  X(Finite, "finite") X(Infinite, "infinite") X(Number, "number") X(Notanumber, "notanumber") \
  X(Normal, "normal") X(Subnormal, "subnormal") \
  /* vectors */ \
  X(V2, "v2") X(V4, "v4") X(V8, "v8") X(X1, "x1") X(X2, "x2") X(X4, "x4") \
  /* memory order, scope, caching */ \
  X(Weak, "weak") X(Volatile, "volatile") X(Relaxed, "relaxed") X(Acquire, "acquire") \
  X(Release, "release") X(AcqRel, "acq_rel") X(Sc, "sc") X(Mmio, "mmio") X(Alias, "alias") \
  X(Proxy, "proxy") X(ProxyAlias, "proxy::alias") X(Async, "async") X(Cta, "cta") X(Cluster, "cluster") \
  X(Gpu, "gpu") X(Sys, "sys") X(Gl, "gl") X(Ca, "ca") X(Cg, "cg") X(Cs, "cs") X(Lu, "lu") X(Cv, "cv") \
  X(Wb, "wb") X(Wt, "wt") X(Nc, "nc") X(L1, "L1") X(L2, "L2") X(L1EvictNormal, "L1::evict_normal") \
  X(L1EvictLast, "L1::evict_last") X(L1EvictFirst, "L1::evict_first") \
  X(L1EvictUnchanged, "L1::evict_unchanged") X(L1NoAllocate, "L1::no_allocate") \
  X(L2EvictLast, "L2::evict_last") X(L2EvictNormal, "L2::evict_normal") X(L2EvictFirst, "L2::evict_first") \
  X(L2EvictUnchanged, "L2::evict_unchanged") X(L2CacheHint, "L2::cache_hint") X(L2x64B, "L2::64B") \
  X(L2x128B, "L2::128B") X(L2x256B, "L2::256B") X(Unified, "unified") X(To, "to") X(Ptr, "ptr") \
  X(Tensormap, "tensormap") X(Fractional, "fractional") X(Range, "range") \
  /* atomics */ \
  X(Add, "add") X(Sub, "sub") X(Min, "min") X(Max, "max") X(Inc, "inc") X(Dec, "dec") X(Cas, "cas") \
  X(Exch, "exch") X(Popc, "popc") \
  /* warps, barriers */ \
  X(Sync, "sync") X(Aligned, "aligned") X(Warp, "warp") X(Arrive, "arrive") X(Wait, "wait") X(Red, "red") \
  X(Up, "up") X(Down, "down") X(Bfly, "bfly") X(Idx, "idx") X(Ballot, "ballot") X(All, "all") \
  X(Any, "any") X(Uni, "uni") X(Init, "init") X(Inval, "inval") X(TestWait, "test_wait") \
  X(TryWait, "try_wait") X(Parity, "parity") X(NoComplete, "noComplete") X(ArriveDrop, "arrive_drop") \
  X(ExpectTx, "expect_tx") X(CompleteTx, "complete_tx") X(PendingCount, "pending_count") \
  X(LaunchDependents, "launch_dependents") X(MbarrierInit, "mbarrier_init") \
  X(MbarrierCompleteTxBytes, "mbarrier::complete_tx::bytes") X(MbarrierArriveOne, "mbarrier::arrive::one") \
  X(Noinc, "noinc") X(Elect, "elect") \
  /* asynchronous copies */ \
  X(CommitGroup, "commit_group") X(WaitGroup, "wait_group") X(WaitAll, "wait_all") X(Bulk, "bulk") \
  X(BulkGroup, "bulk_group") X(Read, "read") X(Tensor, "tensor") X(Tile, "tile") X(Im2col, "im2col") \
  X(MulticastCluster, "multicast::cluster") X(Prefetch, "prefetch") X(Reduce, "reduce") \
  X(Mbarrier, "mbarrier") X(CpMask, "cp_mask") X(Copy, "copy") \
  /* matrices */ \
  X(Load, "load") X(Store, "store") X(Mma, "mma") X(Sp, "sp") X(Row, "row") X(Col, "col") \
  X(Trans, "trans") X(A, "a") X(B, "b") X(C, "c") X(D, "d") X(M16n16k16, "m16n16k16") \
  X(M32n8k16, "m32n8k16") X(M8n32k16, "m8n32k16") X(M8n8k4, "m8n8k4") X(M16n16k8, "m16n16k8") \
  X(M8n8k32, "m8n8k32") X(M8n8k128, "m8n8k128") X(M8n8k16, "m8n8k16") X(M16n8k4, "m16n8k4") \
  X(M16n8k8, "m16n8k8") X(M16n8k16, "m16n8k16") X(M16n8k32, "m16n8k32") X(M16n8k64, "m16n8k64") \
  X(M16n8k128, "m16n8k128") X(M16n8k256, "m16n8k256") X(M8n8, "m8n8") X(M16n16, "m16n16") \
  X(MmaAsync, "mma_async") \
  /* textures, surfaces */ \
  X(D1, "1d") X(D2, "2d") X(D3, "3d") X(D4, "4d") X(D5, "5d") X(A1d, "a1d") X(A2d, "a2d") X(Cube, "cube") \
  X(Acube, "acube") X(Ms2d, "2dms") X(Ams2d, "a2dms") X(Level, "level") X(Grad, "grad") X(Base, "base") \
  X(Zero, "zero") X(Trap, "trap") X(P, "p") X(Width, "width") X(Height, "height") X(Depth, "depth") \
  X(ChannelDataType, "channel_data_type") X(ChannelOrder, "channel_order") \
  X(NormalizedCoords, "normalized_coords") X(NumMipmapLevels, "num_mipmap_levels") \
  X(NumSamples, "num_samples") X(ArraySize, "array_size") X(FilterMode, "filter_mode") \
  X(AddrMode0, "addr_mode_0") X(AddrMode1, "addr_mode_1") X(AddrMode2, "addr_mode_2") \
  X(MemoryLayout, "memory_layout") X(ForceUnnormalizedCoords, "force_unnormalized_coords") \
  /* prmt */ \
  X(F4e, "f4e") X(B4e, "b4e") X(Rc8, "rc8") X(Ecl, "ecl") X(Ecr, "ecr") X(Rc16, "rc16") \
  /* components of registers, and what video instructions select */ \
  X(X, "x") X(Y, "y") X(Z, "z") X(W, "w") X(G, "g") X(Byte0, "b0") X(Byte2, "b2") X(Byte3, "b3") \
  X(H0, "h0") X(H1, "h1") \
  /* byte 1 is kTypeB1 */ \
  X(Po, "po") X(Shr7, "shr7") X(Shr15, "shr15") \
  /* fences between proxies, and words of few instructions */ \
  X(TensormapGeneric, "tensormap::generic") X(AsyncGeneric, "async::generic") \
  X(SyncRestrictSharedCta, "sync_restrict::shared::cta") \
  X(SyncRestrictSharedCluster, "sync_restrict::shared::cluster") X(Cvt, "cvt") X(Mask, "mask") X(Pack, "pack")
// clang-format on

// Special registers without their leading '%': X(id, spelling). %envreg0..31 and %pm0..7 follow as ranges.
// clang-format off
#define CUPLEX_PTX_SPECIALS(X) \
  X(Tid, "tid") X(Ntid, "ntid") X(Laneid, "laneid") X(Warpid, "warpid") X(Nwarpid, "nwarpid") \
  X(Ctaid, "ctaid") X(Nctaid, "nctaid") X(Smid, "smid") X(Nsmid, "nsmid") X(Gridid, "gridid") \
  X(IsExplicitCluster, "is_explicit_cluster") X(Clusterid, "clusterid") X(Nclusterid, "nclusterid") \
  X(ClusterCtaid, "cluster_ctaid") X(ClusterNctaid, "cluster_nctaid") X(ClusterCtarank, "cluster_ctarank") \
  X(ClusterNctarank, "cluster_nctarank") X(LanemaskEq, "lanemask_eq") X(LanemaskLe, "lanemask_le") \
  X(LanemaskLt, "lanemask_lt") X(LanemaskGe, "lanemask_ge") X(LanemaskGt, "lanemask_gt") X(Clock, "clock") \
  X(ClockHi, "clock_hi") X(Clock64, "clock64") X(Globaltimer, "globaltimer") \
  X(GlobaltimerLo, "globaltimer_lo") X(GlobaltimerHi, "globaltimer_hi") \
  X(ReservedSmemOffsetBegin, "reserved_smem_offset_begin") \
  X(ReservedSmemOffsetEnd, "reserved_smem_offset_end") \
  X(ReservedSmemOffsetCap, "reserved_smem_offset_cap") X(ReservedSmemOffset0, "reserved_smem_offset_0") \
  X(ReservedSmemOffset1, "reserved_smem_offset_1") X(TotalSmemSize, "total_smem_size") \
  X(AggrSmemSize, "aggr_smem_size") X(DynamicSmemSize, "dynamic_smem_size") \
  X(CurrentGraphExec, "current_graph_exec")
// clang-format on

#define CUPLEX_PTX_ID(id, ...) k##id,

enum class Type : uint8_t { kNone, CUPLEX_PTX_TYPES(CUPLEX_PTX_ID) };

enum class Space : uint8_t { kNone, CUPLEX_PTX_SPACES(CUPLEX_PTX_ID) };

enum class Opcode : uint32_t {
  CUPLEX_PTX_OPCODES(CUPLEX_PTX_ID) kCount,
  kFirstUnknown = 0x10000,  // kFirstUnknown + i is Module::words[i]
};

/// One `.word` after an opcode, or after a register. Types and spaces are modifiers too: kTypeU32,
/// kSpaceGlobal.
enum class Mod : uint32_t {
#define CUPLEX_PTX_TYPE_ID(id, ...) kType##id,
#define CUPLEX_PTX_SPACE_ID(id, ...) kSpace##id,
  CUPLEX_PTX_TYPES(CUPLEX_PTX_TYPE_ID) CUPLEX_PTX_SPACES(CUPLEX_PTX_SPACE_ID)
      CUPLEX_PTX_MODIFIERS(CUPLEX_PTX_ID) kCount,
#undef CUPLEX_PTX_TYPE_ID
#undef CUPLEX_PTX_SPACE_ID
  kNone = 0xffff,
  kFirstUnknown = 0x10000,  // kFirstUnknown + i is Module::words[i]
};

enum class Special : uint32_t {
  CUPLEX_PTX_SPECIALS(CUPLEX_PTX_ID) kCount,
  kEnvreg0 = 0x100,  // kEnvreg0 + n, n < 32
  kPm0 = 0x140,      // kPm0 + n, n < 8
  kPm0x64 = 0x150,   // kPm0x64 + n, n < 8: spelled %pmN_64
};

#undef CUPLEX_PTX_ID

/// Size of a value of the type; 0 for kNone, 1 for kPred. Sub-byte types occur in instructions only.
unsigned BitsOf(Type type);

/// The type, or the space, that a modifier names; kNone where it names none.
Type TypeOf(Mod mod);
Space SpaceOf(Mod mod);
Mod ModOf(Type type);
Mod ModOf(Space space);

std::string_view Text(Type type);
std::string_view Text(Space space);

// Spelling of a known word; empty for ids at or above kFirstUnknown (ask Module::Text).
std::string_view Text(Opcode opcode);
std::string_view Text(Mod mod);

/// With the leading '%'.
std::string_view Text(Special special);

// The word's id, nullopt where this file does not know it. Spellings without leading '.' or '%'.
std::optional<Opcode> FindOpcode(std::string_view text);
std::optional<Mod> FindMod(std::string_view text);
std::optional<Special> FindSpecial(std::string_view text);

}  // namespace cuplex::ptx
