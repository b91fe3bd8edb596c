// The emitting functions of every opcode family. Called by the opcode table alone; each appends the code of
// one instruction to the emitter's function, or refuses it with a sentence.
#pragma once

#include "base/result.h"
#include "ptx/module.h"

namespace llvm {
class Value;
}

namespace cuplex::softcuda {

class Emitter;

using EmitFunction = Status(Emitter&, const ptx::Instruction&);

// arithmetic.cc
EmitFunction EmitAdd, EmitSub, EmitMul, EmitMad, EmitMad24, EmitFma, EmitDiv, EmitMinMax, EmitAbs, EmitNeg,
    EmitSad, EmitDotProduct;
// math.cc
EmitFunction EmitMath, EmitRoot, EmitCopysign, EmitTestp;
// bits.cc
EmitFunction EmitLogic, EmitNot, EmitShift, EmitShf, EmitBfe, EmitBfi, EmitBfind, EmitBmsk, EmitBitCount,
    EmitFns, EmitLop3, EmitPrmt, EmitSzext;
// compare.cc
EmitFunction EmitSet, EmitSelp, EmitSlct;
// convert.cc
EmitFunction EmitCvt;
// memory.cc
EmitFunction EmitMov, EmitLd, EmitSt, EmitCvta, EmitIsspacep, EmitFence, EmitNothing, EmitCreatepolicy,
    EmitMapa;
// atomic.cc
EmitFunction EmitAtom;
// async.cc
EmitFunction EmitCp, EmitMbarrier;
/// Tells the mbarrier in shared memory that an asynchronous operation of so many bytes is done.
Status CompleteTransaction(Emitter& e, const ptx::Instruction& in, const ptx::Operand& barrier,
                           llvm::Value* bytes);
// stack.cc
EmitFunction EmitAlloca;
// video.cc
EmitFunction EmitVideo, EmitScalarVideo;
// matrices.cc
EmitFunction EmitMatrix;
// texture.cc
EmitFunction EmitTex, EmitTld4, EmitTextureQuery, EmitSuld, EmitSust, EmitSured;
// control_flow.cc
EmitFunction EmitBra, EmitBrx, EmitRet, EmitExit, EmitTrap, EmitCall, EmitNanosleep;
// warp.cc
EmitFunction EmitBarrier, EmitShfl, EmitVote, EmitMatch, EmitRedux, EmitElect, EmitActivemask;

}  // namespace cuplex::softcuda
