#!/usr/bin/env python3
"""A program that asks for more device memory than its tenant has, and copes.

    over_limit.py [ROUNDS]

Loads libcuda.so.1 as any program does and knows nothing of cuplex. Each round fills the device memory it can get,
16 MiB at a time, until the driver says CUDA_ERROR_OUT_OF_MEMORY; frees half; shows that it can go on: what it
writes to the rest and to fresh memory it reads back; frees everything. Prints one line a round and a last line for
machines: "over_limit: ok rounds=N refused=N limit_mib=N". Exit status 1 where anything else happens.
"""
import ctypes
import sys

OUT_OF_MEMORY = 2
PIECE = 16 << 20


class Failure(Exception):
    pass


class Driver:
    def __init__(self, library="libcuda.so.1"):
        try:
            self.library = ctypes.CDLL(library)
        except OSError as error:
            raise Failure(f"{library} cannot be loaded: {error}") from None

    def code(self, name, *arguments):
        return getattr(self.library, name)(*arguments)

    def __call__(self, name, *arguments):
        code = self.code(name, *arguments)
        if code:
            raise Failure(f"{name} answered {self.name(code)}, success was expected")

    def name(self, code):
        text = ctypes.c_char_p()
        if self.library.cuGetErrorName(code, ctypes.byref(text)) or not text.value:
            return str(code)
        return f"{text.value.decode()} ({code})"


def fill(cuda, most):
    """Allocates until out of memory: the pieces, and the code that ended it."""
    pieces = []
    while len(pieces) * PIECE <= most:
        address = ctypes.c_uint64()
        code = cuda.code("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(PIECE))
        if code:
            return pieces, code
        pieces.append(address)
    raise Failure(f"{len(pieces) * PIECE >> 20} MiB were given, though cuMemGetInfo spoke of {most >> 20} MiB in all")


def holds_what_is_written(cuda, address, seed):
    wrote = bytes((seed * 37 + i * 11) % 251 for i in range(4096))
    read = ctypes.create_string_buffer(len(wrote))
    at_end = ctypes.c_uint64(address.value + PIECE - len(wrote))
    cuda("cuMemcpyHtoD_v2", at_end, wrote, ctypes.c_size_t(len(wrote)))
    cuda("cuMemcpyDtoH_v2", read, at_end, ctypes.c_size_t(len(wrote)))
    if read.raw != wrote:
        raise Failure(f"device memory at {address.value:#x} does not hold what was written")


def run(rounds):
    cuda = Driver()
    cuda("cuInit", 0)
    device, context = ctypes.c_int(), ctypes.c_void_p()
    cuda("cuDeviceGet", ctypes.byref(device), 0)
    cuda("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    cuda("cuCtxSetCurrent", context)
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    cuda("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    refused = 0
    for n in range(1, rounds + 1):
        pieces, code = fill(cuda, total.value)
        if code != OUT_OF_MEMORY:
            raise Failure(f"memory ran out with {cuda.name(code)}, CUDA_ERROR_OUT_OF_MEMORY (2) was expected")
        if len(pieces) < 2:
            raise Failure(f"only {len(pieces)} pieces of {PIECE >> 20} MiB were given, at least 2 were expected")
        refused += 1
        got, keep = len(pieces), len(pieces) // 2
        for address in pieces[keep:]:
            cuda("cuMemFree_v2", address)
        fresh = ctypes.c_uint64()
        cuda("cuMemAlloc_v2", ctypes.byref(fresh), ctypes.c_size_t(PIECE))
        pieces[keep:] = [fresh]
        for seed, address in enumerate(pieces):
            holds_what_is_written(cuda, address, seed + n)
        print(f"round {n}: {cuda.name(code)} after {got * PIECE >> 20} MiB; freed half and went on",
              flush=True)
        for address in pieces:
            cuda("cuMemFree_v2", address)
    cuda("cuDevicePrimaryCtxRelease_v2", device)
    print(f"over_limit: ok rounds={rounds} refused={refused} limit_mib={total.value >> 20}")


def main(argv):
    try:
        run(int(argv[1]) if len(argv) > 1 else 1)
    except Failure as failure:
        print(f"over_limit: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
