"""A machine that runs functions of LLVM IR on several threads and takes their steps in all orders.

In: a module as the builder writes it, and the functions that threads begin with. Out: `Broken` where some order of
steps breaks what is checked here: each chunk of a launch is run once before its caller goes on, nobody waits for good,
and no worker sleeps through a launch that it has a worker slot in.

A step is one access to memory that threads share; what a thread does by itself until its next one belongs to it. Memory
is sequentially consistent. The outside world is the machine's own: a futex, `spin`, which may give up at any time, the
number of the process, a clock, new threads, and the bodies of launches, which `tell` what they were called with.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

WIDTHS = {"i1": 1, "i8": 8, "i32": 32, "i64": 64, "ptr": 64}
A, B, C, KIND = "(?P<a>[^ ,]+)", "(?P<b>[^ ,]+)", "(?P<c>[^ ,]+)", r"(?P<kind>i\d+|ptr)"
FORMS = {
    "load": rf"load (?:atomic )?{KIND}, ptr {A}.*",
    "store": rf"store (?:atomic )?{KIND} {A}, ptr {B}.*",
    "exchange": rf"cmpxchg ptr {A}, {KIND} {B}, \w+ {C} .*",
    "update": rf"atomicrmw (?P<how>\w+) ptr {A}, {KIND} {B} .*",
    "at": rf"getelementptr {KIND}, ptr {A}, i64 {B}",
    "compare": rf"icmp (?P<how>\w+) {KIND} {A}, {B}",
    "select": rf"select i1 {A}, {KIND} {B}, \w+ {C}",
    "cast": rf"(?:zext|trunc|inttoptr|ptrtoint) \w+ {A} to {KIND}",
    "part": r"extractvalue \{.*\} (?P<a>\S+), (?P<how>\d)",
    "local": r"alloca (?P<how>.*)",
    "jump": r"br label %(?P<how>\S+)",
    "branch": rf"br i1 {A}, label %(?P<how>\S+), label %(?P<kind>\S+)",
    "return": rf"ret (?:void|{KIND} {A})",
    "call": r"call \S+ (?:\([^)]*\) )?(?P<how>[%@][\w.]+)\((?P<kind>.*)\).*",
    "phi": r"phi \S+ (?P<how>.*)",
    "compute": rf"(?P<how>\w+)(?: nsw)? {KIND} {A}, {B}",
}
COMPUTE: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << (b & 63),
    "lshr": lambda a, b: a >> b,
    "udiv": lambda a, b: a // b,
}
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
SIZES = {"i8": 1, "i32": 4, "i64": 8, "ptr": 8}
VISIBLE = frozenset(("sleep", "wake", "spin", "tell", "fork"))
"""Functions that are the machine's, and a step."""
WORLD = VISIBLE | {"clock"}
"""Functions of the module that are the machine's."""


class Broken(AssertionError):
    """What an order of steps led to."""


Arg = str | int


class Instruction(NamedTuple):
    """One of a block: its form, its result, its type, and what its form says more."""

    form: str
    name: str
    kind: str
    how: str
    args: tuple[Arg, ...]
    ways: tuple[tuple[str, Arg], ...] = ()


class Body(NamedTuple):
    """A function: its parameters, its blocks, and the registers that may still be read at each place of one."""

    params: list[str]
    blocks: dict[str, list[Instruction]]
    alive: dict[tuple[str, int], frozenset[Arg]]


class Frame(NamedTuple):
    """A call under way: where it is, and its registers."""

    function: str
    block: str
    place: int
    registers: dict[Arg, Any]


class Thread(NamedTuple):
    """worker_slot: its own. frames: the calls under way, none where it has ended. asleep: on which word, which had what
    value, and the bits that wake it."""

    worker_slot: int
    frames: tuple[Frame, ...]
    asleep: tuple[int, int, int] | None = None


@dataclass
class State:
    """All there is at one moment. told: how often a body was called with a context and a first iteration."""

    memory: dict[int, int]
    threads: list[Thread]
    told: dict[tuple[int, int], int] = field(default_factory=dict)
    process: int = 1
    ticks: int = 0

    def copy(self) -> State:
        return State(dict(self.memory), list(self.threads), dict(self.told), self.process, self.ticks)

    def key(self) -> int:
        threads = [
            (
                thread.worker_slot,
                thread.asleep,
                *((*each[:3], frozenset(each.registers.items())) for each in thread.frames),
            )
            for thread in self.threads
        ]
        told, memory = frozenset(self.told.items()), frozenset(self.memory.items())
        return hash((memory, tuple(threads), told, self.process, self.ticks))


def operand(text: str, kind: str = "i64") -> Arg:
    """A register or global by its name, a constant as a number without sign."""
    if text[0] in "%@":
        return text
    number = {"true": 1, "false": 0, "null": 0}.get(text)
    return int(text) % (1 << WIDTHS[kind]) if number is None else number


def read_instruction(line: str) -> Instruction:
    name, _, text = line.strip().rpartition(" = ")
    for form, pattern in FORMS.items():
        if found := re.fullmatch(pattern, text):
            said = {"kind": "", "how": "", **{key: value or "" for key, value in found.groupdict().items()}}
            kind, how = said["kind"], said["how"]
            if form == "call":
                args = tuple(operand(*reversed(given.split(" "))) for given in kind.split(", ") if given)
                return Instruction(form, name, "", how, args)
            ways = re.findall(r"\[([^ ]+), %([^\]]+)\]", how) if form == "phi" else []
            width = kind if kind in WIDTHS and form != "at" else "i64"
            args = tuple(operand(said[key], width) for key in "abc" if said.get(key))
            return Instruction(form, name, kind, how, args, tuple((block, operand(value)) for value, block in ways))
    raise ValueError(line)


def read_module(text: str) -> dict[str, Body]:
    """The functions that a module defines."""
    found = {}
    pattern = re.compile(r"^define .*?@([\w.]+)\((.*?)\).*?\{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
    for name, params, lines in pattern.findall(text):
        blocks: dict[str, list[Instruction]] = {}
        for line in lines.splitlines():
            if line.endswith(":"):
                blocks[line[:-1]] = block = []
            elif "fence" not in line:
                block.append(read_instruction(line))
        found[name] = Body(re.findall(r"%[\w.]+", params), blocks, live_registers(blocks))
    return found


def live_registers(blocks: dict[str, list[Instruction]]) -> dict[tuple[str, int], frozenset[Arg]]:
    """States that differ only in registers that nobody reads any more are the same."""
    alive: dict[tuple[str, int], frozenset[Arg]] = {(label, 0): frozenset() for label in blocks}
    while True:
        before = dict(alive)
        for label, block in blocks.items():
            last = block[-1]
            targets = {"jump": (last.how,), "branch": (last.how, last.kind)}.get(last.form, ())
            now: frozenset[Arg] = frozenset()
            for target in targets:
                ways = {each.name: dict(each.ways)[label] for each in blocks[target] if each.form == "phi"}
                now |= (alive[target, 0] - ways.keys()) | set(ways.values())
            for place in range(len(block) - 1, -1, -1):
                alive[label, place + 1] = now
                each = block[place]
                now = (now - {each.name}) | set(each.args) | ({each.how} if each.form == "call" else set())
            alive[label, 0] = now
        if alive == before:
            return alive


class Machine:
    """A module in memory. settings: what launches are told. is_whole: an exchange looks and writes
    in one step; else it writes whatever came between. wakes: the system wakes those that are to be woken."""

    def __init__(self, text: str, settings: tuple[int, ...], *, is_whole: bool = True, wakes: bool = True) -> None:
        self.functions = read_module(text)
        self.is_whole, self.wakes = is_whole, wakes
        names = [*re.findall(r"^@([\w.]+) = ", text, re.MULTILINE)]
        self.addresses = {f"@{name}": (number + 1) << 20 for number, name in enumerate(names)}
        self.shared = {address >> 20 for address in self.addresses.values()}
        self.addresses |= {f"@{name}": (number + 1) << 40 for number, name in enumerate(self.functions)}
        self.names = {address: name[1:] for name, address in self.addresses.items()}
        self.settings = 1 << 56
        self.start = {self.settings + 8 * place: word for place, word in enumerate(settings)}

    def word(self, state: State, name: str, offset: int = 0) -> int:
        return state.memory.get(self.addresses[f"@{name}"] + offset, 0)

    def begin(self, *functions: str, **words: int) -> State:
        """Threads that begin with these functions, which get the address of the settings; words of memory."""
        state = State(self.start | {self.addresses[f"@{name}"]: word for name, word in words.items()}, [])
        for number, function in enumerate(functions):
            self.start_thread(state, -1 - number, function, self.settings)
        return self.settled(state)

    def start_thread(self, state: State, worker_slot: int, function: str, argument: int) -> None:
        registers: dict[Arg, Any] = dict(zip(self.functions[function].params, [argument], strict=True))
        state.threads.append(Thread(worker_slot, (Frame(function, "start", 0, registers),)))

    # Steps. ----------------------------------------------------------------------------------------------------------

    def explore(self, state: State, most: int = 60_000) -> int:
        """Take all orders of steps; how many states there are. Raises Broken."""
        waiting, seen = [state], {state.key()}
        while waiting:
            now = waiting.pop()
            for after in self.successors(now):
                if (key := after.key()) not in seen:
                    seen.add(key)
                    waiting.append(after)
            if len(seen) > most:
                raise Broken("there are more states than there should be")
        return len(seen)

    def wander(self, state: State, seed: int) -> None:
        """Take one order of steps, by chance. Raises Broken."""
        chance = random.Random(seed)
        for _ in range(20_000):
            if not (following := self.successors(state)):
                return
            state = chance.choice(following)
        raise Broken("there is no end")

    def successors(self, state: State) -> list[State]:
        """The states after a step of each thread; none at the end, which is looked at. After a fork there are two."""
        ready = [number for number, thread in enumerate(state.threads) if thread.frames and not thread.asleep]
        if not ready:
            self.check_end(state)
        found = []
        for number in ready:
            after = state.copy()
            if self.next_of(after.threads[number]).how == "@fork":
                child = replace(state.copy(), process=2, threads=[state.threads[number]])
                self.go_on(child, 0, 1)
                found.append(self.settled(child))
            self.run(after, number)
            found.append(self.settled(after))
        return found

    def settled(self, state: State) -> State:
        """The state when each thread has done what is its own, up to its next step."""
        for number in range(10**6):
            if number == len(state.threads):
                return state
            while (thread := state.threads[number]).frames and not thread.asleep and not self.is_visible(thread):
                self.run(state, number)
        raise AssertionError

    def check_end(self, state: State) -> None:
        for thread in state.threads:
            if thread.worker_slot < 0 and thread.frames:
                raise Broken("a caller waits for good")
            if thread.asleep and thread.worker_slot < self.word(state, "team"):
                share = self.word(state, "shares", 64 * thread.worker_slot)
                if share >> 32 == self.word(state, "launches") != thread.asleep[1]:
                    raise Broken("a worker sleeps through a launch")

    def check_launch(self, state: State, context: int, count: int, size: int) -> None:
        """When a caller goes on."""
        ran = {begin: times for (where, begin), times in state.told.items() if where == context}
        if ran != dict.fromkeys(range(0, count, size), 1):
            raise Broken(f"chunks of launch {context} were run so often: {ran}")

    # Instructions. ---------------------------------------------------------------------------------------------------

    def value(self, frame: Frame, arg: Arg) -> Any:
        if isinstance(arg, int):
            return arg
        return self.addresses[arg] if arg[0] == "@" else frame.registers[arg]

    def next_of(self, thread: Thread) -> Instruction:
        frame = thread.frames[-1]
        return self.functions[frame.function].blocks[frame.block][frame.place]

    def is_visible(self, thread: Thread) -> bool:
        each = self.next_of(thread)
        if each.form == "call":
            return each.how[1:] in VISIBLE
        if each.form in ("load", "store", "exchange", "update"):
            return self.value(thread.frames[-1], each.args[each.form == "store"]) >> 20 in self.shared
        return False

    def run(self, state: State, number: int) -> None:
        """The next instruction of a thread."""
        thread, each = state.threads[number], self.next_of(state.threads[number])
        frame = thread.frames[-1]
        args = [self.value(frame, arg) for arg in each.args]
        match each.form:
            case "jump":
                self.jump(state, number, each.how)
            case "branch":
                self.jump(state, number, each.how if args[0] else each.kind)
            case "return":
                depth, stack = len(thread.frames), self.stack(thread) >> 20
                state.memory = {at: word for at, word in state.memory.items() if at >> 20 != stack}
                state.threads[number] = thread._replace(frames=thread.frames[:-1])
                if depth > 1:
                    self.go_on(state, number, args[0] if args else None)
            case "call" if (name := self.callee(frame, each)) in self.functions and name not in WORLD:
                registers: dict[Arg, Any] = dict(zip(self.functions[name].params, args, strict=True))
                state.threads[number] = thread._replace(frames=(*thread.frames, Frame(name, "start", 0, registers)))
            case "call":
                self.ask_world(state, number, self.callee(frame, each), args)
            case "local":
                self.go_on(state, number, self.stack(thread) + 256 * frame.place)
            case _:
                self.go_on(state, number, self.compute(state, each, args))

    def callee(self, frame: Frame, each: Instruction) -> str:
        return each.how[1:] if each.how[0] == "@" else self.names[self.value(frame, each.how)]

    def stack(self, thread: Thread) -> int:
        return (1 << 50) + (thread.worker_slot + 64 << 30) + (len(thread.frames) << 20)

    def jump(self, state: State, number: int, target: str) -> None:
        frame = state.threads[number].frames[-1]
        block = self.functions[frame.function].blocks[target]
        phis = [each for each in block if each.form == "phi"]
        new: dict[Arg, Any] = {each.name: self.value(frame, dict(each.ways)[frame.block]) for each in phis}
        self.move(state, number, frame._replace(block=target, place=len(phis), registers=frame.registers | new))

    def go_on(self, state: State, number: int, result: Any = None) -> None:
        thread = state.threads[number]
        frame, name = thread.frames[-1], self.next_of(thread).name
        registers = frame.registers | ({name: result} if name else {})
        self.move(state, number, frame._replace(place=frame.place + 1, registers=registers))

    def move(self, state: State, number: int, frame: Frame) -> None:
        alive = self.functions[frame.function].alive[frame.block, frame.place]
        frame = frame._replace(registers={name: value for name, value in frame.registers.items() if name in alive})
        thread = state.threads[number]
        state.threads[number] = thread._replace(frames=(*thread.frames[:-1], frame))

    def compute(self, state: State, each: Instruction, args: list[Any]) -> Any:
        """The result of an instruction that computes or reaches memory."""
        full = (1 << WIDTHS.get(each.kind, 64)) - 1
        match each.form:
            case "load":
                return state.memory.get(args[0], 0)
            case "store":
                state.memory[args[1]] = args[0]
            case "exchange":
                old = state.memory.get(args[0], 0)
                if old == args[1] or not self.is_whole:
                    state.memory[args[0]] = args[2]
                return old, int(old == args[1] or not self.is_whole)
            case "update":
                old = state.memory.get(args[0], 0)
                state.memory[args[0]] = COMPUTE[each.how](old, args[1]) & full
                return old
            case "part":
                return args[0][int(each.how)]
            case "select":
                return args[1] if args[0] else args[2]
            case "cast":
                return args[0] & full
            case "at":
                return (args[0] + SIZES[each.kind] * args[1]) % 2**64
            case "compare":
                if each.how[0] == "s":
                    args = [value ^ (full + 1 >> 1) for value in args]
                return int(COMPARE[each.how[-2:]](*args))
            case _:
                return COMPUTE[each.how](*args) & full
        return None

    def ask_world(self, state: State, number: int, name: str, args: list[int]) -> None:
        """What the machine does itself."""
        thread = state.threads[number]
        if name == "sleep" and state.memory.get(args[0], 0) == args[1]:
            state.threads[number] = thread._replace(asleep=(args[0], args[1], args[2]))
            return
        result = 0
        if name == "wake":
            self.wake(state, args[0], args[1])
        elif name == "spin":
            result = int(state.memory.get(args[0], 0) != args[1])
        elif name == "tell":
            state.told[args[0], args[1]] = state.told.get((args[0], args[1]), 0) + 1
        elif name == "returned":
            self.check_launch(state, *args)
        elif name == "getpid":
            result = state.process
        elif name == "clock":
            state.ticks += args[0] == 1 and self.word(state, "resume") > state.ticks
            result = state.ticks
        elif name == "pthread_create":
            self.start_thread(state, args[3], self.names[args[2]], args[3])
        elif name == "llvm.memset.p0.i64":
            state.memory = {at: word for at, word in state.memory.items() if not args[0] <= at < args[0] + args[2]}
        elif name.startswith(("llvm.umin", "llvm.umax", "llvm.smax")):
            result = (min if "min" in name else max)(args, key=lambda each: each ^ (1 << 63 if ".s" in name else 0))
        else:
            assert name in ("sleep", "fork", "sched_yield", "pthread_detach", "pthread_sigmask", "sigfillset"), name
        self.go_on(state, number, result)

    def wake(self, state: State, word: int, bits: int) -> None:
        for other, sleeper in enumerate(state.threads):
            if self.wakes and sleeper.asleep and sleeper.asleep[0] == word and sleeper.asleep[2] & bits:
                state.threads[other] = sleeper._replace(asleep=None)
                self.go_on(state, other)
