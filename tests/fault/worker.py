#!/usr/bin/env python3
"""A client program that does what it is told, line by line, and answers each line with one line.

    worker.py KERNELS_PTX

Loads libcuda.so.1 by ctypes, as a Python program would; knows nothing of the server. Codes are CUDA's numbers.

    init                          -> CODE                 cuInit, and a context on device 0
    alloc BYTES                   -> CODE ADDRESS
    free ADDRESS                  -> CODE
    host BYTES                    -> CODE ADDRESS         pinned memory
    unhost ADDRESS                -> CODE
    info                          -> CODE FREE TOTAL
    fill ADDRESS BYTE COUNT       -> CODE                 and waits
    holds ADDRESS BYTE COUNT      -> CODE yes|no
    read ADDRESS COUNT            -> CODE                 by a copy; nothing of what is read is said
    wild ADDRESS                  -> CODE                 a kernel writes there; then synchronises
    spin TURNS                    -> CODE                 launches a kernel of so many turns, and does not wait
    sync                          -> CODE
    race FILE ME OTHERS ROUNDS BYTES -> CODES...          allocates with others at a barrier, again and again
    verify SECONDS                -> ok ROUNDS | CODE | wrong     computes and checks
    busy                          -> ready                and then works until it is killed
    graph NODES TURNS             -> CODE                 launches a graph of such kernels three times, and does not wait
    capture LAUNCHES              -> CODE                 captures so many, and does not end it
    link KERNELS                  -> ready                and then links so many again and again until it is killed
    fork                          -> CODE STATUS CODE     of a call in the child, how that ended, a call in the parent
"""
import ctypes
import mmap
import os
import sys
import time

WORDS = 4096


class Driver:
    def __init__(self, kernels):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.kernels = open(kernels, "rb").read() + b"\0"
        self.context, self.module = ctypes.c_void_p(), ctypes.c_void_p()
        self.functions = {}

    def __call__(self, name, *arguments):
        return getattr(self.library, name)(*arguments)

    def init(self):
        return (self("cuInit", 0) or self("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0) or
                self("cuCtxSetCurrent", self.context))

    def function(self, name):
        """(code, function)"""
        if name not in self.functions:
            if not self.module:
                code = self("cuModuleLoadData", ctypes.byref(self.module), self.kernels)
                if code:
                    return code, None
            function = ctypes.c_void_p()
            code = self("cuModuleGetFunction", ctypes.byref(function), self.module, name.encode())
            if code:
                return code, None
            self.functions[name] = function
        return 0, self.functions[name]

    def launch(self, name, blocks, threads, *arguments):
        code, function = self.function(name)
        pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments))
        return code or self("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, None, pointers, None)

    def alloc(self, count):
        address = ctypes.c_uint64()
        return self("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(count)), address

    def free(self, address):
        return self("cuMemFree_v2", address)

    def info(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        return self("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total)), free.value, total.value

    def sync(self):
        return self("cuCtxSynchronize")


class Barrier:
    """A file of counters, one a process: nobody passes before all have come."""

    def __init__(self, path, me, others):
        with open(path, "r+b") as file:
            self.counters = mmap.mmap(file.fileno(), 8 * (others + 1))
        self.me, self.all, self.turn = me, others + 1, 0

    def wait(self):
        self.turn += 1
        self.counters[8 * self.me:8 * self.me + 8] = self.turn.to_bytes(8, "little")
        deadline = time.monotonic() + 60
        while any(int.from_bytes(self.counters[8 * i:8 * i + 8], "little") < self.turn for i in range(self.all)):
            if time.monotonic() > deadline:
                sys.exit("the others did not come to the barrier")


def race(cuda, path, me, others, rounds, count):
    barrier, codes = Barrier(path, me, others), []
    for _ in range(rounds):
        barrier.wait()
        code, address = cuda.alloc(count)
        codes.append(code)
        barrier.wait()
        if code == 0:
            cuda.free(address)
            cuda.sync()
        barrier.wait()
    return codes


def verify(cuda, seconds):
    """Adds on the device and on the host, and compares."""
    code, address = cuda.alloc(4 * WORDS)
    if code:
        return code
    values = (ctypes.c_uint32 * WORDS)(*range(WORDS))
    back = (ctypes.c_uint32 * WORDS)()
    size = ctypes.c_size_t(4 * WORDS)
    end, rounds = time.monotonic() + seconds, 0
    while time.monotonic() < end or rounds == 0:
        code = cuda("cuMemcpyHtoD_v2", address, values, size)
        for i in range(3):
            code = code or cuda.launch("add", WORDS // 256, 256, address, ctypes.c_uint32(rounds + i), ctypes.c_uint32(WORDS))
        code = code or cuda("cuMemcpyDtoH_v2", back, address, size)
        if code:
            return code
        more = 3 * rounds + 3
        if any(back[i] != i + more for i in range(0, WORDS, 97)):
            return "wrong"
        rounds += 1
    return cuda.free(address) or f"ok {rounds}"


def busy(cuda):
    """A bit of everything, for as long as it lasts."""
    code, kept = cuda.alloc(8 << 20)
    code = code or cuda.launch("add", 1, 64, kept, ctypes.c_uint32(1), ctypes.c_uint32(64)) or cuda.sync()
    print("ready" if code == 0 else code, flush=True)
    host, pinned = ctypes.create_string_buffer(1 << 20), ctypes.c_void_p()
    while True:
        _, more = cuda.alloc(4 << 20)
        cuda("cuMemHostAlloc", ctypes.byref(pinned), ctypes.c_size_t(1 << 20), 0)
        cuda("cuMemcpyDtoHAsync_v2", pinned, kept, ctypes.c_size_t(1 << 20), None)
        cuda("cuMemcpyHtoD_v2", more, host, ctypes.c_size_t(1 << 20))
        for _ in range(20):
            cuda.launch("slow_write", 4, 32, kept, ctypes.c_uint32(1), ctypes.c_uint32(100))
        cuda("cuMemcpyDtoH_v2", host, kept, ctypes.c_size_t(1 << 20))
        cuda("cuMemFreeHost", pinned)
        cuda.free(more)


def captured(cuda, launches, turns):
    """(code, stream): a stream that captures, with so many kernels."""
    stream = ctypes.c_void_p()
    code, address = cuda.alloc(64)
    code, slow = (code, None) if code else cuda.function("slow_write")
    code = code or cuda("cuStreamCreate", ctypes.byref(stream), 1) or cuda("cuStreamBeginCapture_v2", stream, 2)
    arguments = [address, ctypes.c_uint32(1), ctypes.c_uint32(turns)]
    pointers = (ctypes.c_void_p * 3)(*(ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments))
    for _ in range(launches):
        code = code or cuda("cuLaunchKernel", slow, 1, 1, 1, 1, 1, 1, 0, stream, pointers, None)
    return code, stream


def graph(cuda, nodes, turns):
    code, stream = captured(cuda, nodes, turns)
    graph, ready = ctypes.c_void_p(), ctypes.c_void_p()
    code = code or cuda("cuStreamEndCapture", stream, ctypes.byref(graph))
    code = code or cuda("cuGraphInstantiateWithFlags", ctypes.byref(ready), graph, ctypes.c_uint64(0))
    for _ in range(3):
        code = code or cuda("cuGraphLaunch", ready, stream)
    return code


def link(cuda, kernels):
    text = b".version 7.0\n.target sm_50\n.address_size 64\n" + b"".join(
        b".visible .entry k%d()\n{\n  .reg .b32 %%r<9>;\n  mov.u32 %%r0, %d;\n  ret;\n}\n" % (i, i) for i in range(kernels))
    print("ready", flush=True)
    while True:
        state, image, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        code = (cuda("cuLinkCreate_v2", 0, None, None, ctypes.byref(state)) or
                cuda("cuLinkAddData_v2", state, 1, text, ctypes.c_size_t(len(text) + 1), b"text", 0, None, None) or
                cuda("cuLinkComplete", state, ctypes.byref(image), ctypes.byref(size)) or cuda("cuLinkDestroy", state))
        if code:
            return code


def fork(cuda):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code, _ = cuda.alloc(4096)
        os.write(writing, str(code).encode())
        os._exit(0)
    os.close(writing)
    said = os.read(reading, 16).decode()
    _, status = os.waitpid(child, 0)
    code, address = cuda.alloc(4096)
    return f"{said} {status} {code or cuda.free(address) or cuda.sync()}"


def answer(cuda, verb, words):
    if verb == "init":
        return cuda.init()
    if verb == "alloc":
        code, address = cuda.alloc(int(words[0]))
        return f"{code} {address.value}"
    if verb == "free":
        return cuda.free(ctypes.c_uint64(int(words[0])))
    if verb == "host":
        at = ctypes.c_void_p()
        code = cuda("cuMemHostAlloc", ctypes.byref(at), ctypes.c_size_t(int(words[0])), 0)
        return f"{code} {at.value or 0}"
    if verb == "unhost":
        return cuda("cuMemFreeHost", ctypes.c_void_p(int(words[0])))
    if verb == "info":
        return "{} {} {}".format(*cuda.info())
    if verb == "fill":
        address, byte, count = (int(word) for word in words)
        return cuda("cuMemsetD8_v2", ctypes.c_uint64(address), ctypes.c_ubyte(byte), ctypes.c_size_t(count)) or cuda.sync()
    if verb in ("holds", "read"):
        address, count = int(words[0]), int(words[-1])
        host = ctypes.create_string_buffer(count)
        code = cuda("cuMemcpyDtoH_v2", host, ctypes.c_uint64(address), ctypes.c_size_t(count))
        if verb == "read":
            return code
        return f"{code} {'yes' if host.raw == bytes([int(words[1])]) * count else 'no'}"
    if verb == "wild":
        return cuda.launch("wild_write", 1, 1, ctypes.c_uint64(int(words[0])), ctypes.c_uint32(0xbad)) or cuda.sync()
    if verb == "spin":
        code, address = cuda.alloc(64)
        return code or cuda.launch("slow_write", 1, 1, address, ctypes.c_uint32(1), ctypes.c_uint32(int(words[0])))
    if verb == "sync":
        return cuda.sync()
    if verb == "race":
        return " ".join(str(code) for code in race(cuda, words[0], *(int(word) for word in words[1:])))
    if verb == "verify":
        return verify(cuda, float(words[0]))
    if verb == "busy":
        return busy(cuda)
    if verb == "graph":
        return graph(cuda, int(words[0]), int(words[1]))
    if verb == "capture":
        return captured(cuda, int(words[0]), 1)[0]
    if verb == "link":
        return link(cuda, int(words[0]))
    if verb == "fork":
        return fork(cuda)
    sys.exit(f"worker: \"{verb}\" is nothing it does")


def main(arguments):
    cuda = Driver(arguments[0])
    for line in sys.stdin:
        verb, *words = line.split()
        print(answer(cuda, verb, words), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
