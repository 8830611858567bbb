"""The breakages in tracing: questions about sizes, guards, variants."""

from __future__ import annotations

from mutation.mutant import Area, Mutant as M

TRACING = Area(
    "tracing",
    ("tracing/test_guards.py", "tracing/test_questions.py", "tracing/test_jit.py", "tracing/test_plain_programs.py"),
    (
        M("what does not hold is noted as if it did", "ops/questions.py",
          "_note(left, relation if answer else OPPOSITES[relation], right, sources)", "_note(left, relation, right, sources)"),
        M("a value is looked for in sizes though it follows from more", "ops/questions.py",
          "if len(node.type.shape) > 1 or not (node.args or node.op is CONSTANT):", "if len(node.type.shape) > 1:"),
        M("a division by a size that is 0 gives a number", "ops/questions.py",
          "if node.op.name in DIVISIONS and not args[1].any():", "if False:"),
        M("sizes of several traces are noted in one of them", "ops/questions.py",
          "    if len(lists) == 1:\n        (notes,) = lists.values()", "    if lists:\n        notes, *_ = lists.values()"),
        M("a trace that has ended goes on answering", "startup/process.py",
          "        vars(state).update(before)\n", "        pass\n"),
        M("a bound is that of the number beside it", "ops/questions.py",
          "return size, -factor * number + (strict if up else -strict), up", "return size, -factor * number, up"),
        M("of two bounds the looser one is kept", "tracing/variants.py",
          "(before[0] >= number if up else before[0] <= number)", "(before[0] <= number if up else before[0] >= number)"),
        M("a bound from above is taken for one from below", "ops/questions.py",
          'up = note.relation.startswith("greater") == (factor == 1)', 'up = note.relation.startswith("greater")'),
        M("a number says a size though it is said of another value", "ops/questions.py",
          "if size.op is not SIZE or factor not in (1, -1):", "if factor not in (1, -1):"),
        M("conditions of floats are left to native code", "tracing/variants.py",
          'if name not in CODES or dtype == "float64" or', "if name not in CODES or"),
        M("the kernel has no guards", "tracing/variants.py",
          '        made[0] = checked(made[0], [cast(holds, "int64")], told, "shape")\n', ""),
        M("axes of one element do not broadcast", "tracing/traced.py",
          "        if isinstance(error, ShapeError):\n            wide", "        if not error:\n            wide"),
        M("native code goes on with a variant that is none any more", "tracing/traced.py",
          '"axes of one element broadcast")\n        self.use(None)\n', '"axes of one element broadcast")\n'),
        M("a call takes the variant that was made first", "tracing/variants.py",
          "            if not variant.holds(shapes):\n                continue\n", ""),
        M("axes of one element are looked at last", "tracing/traced.py",
          'variants.insert(0, made)\n        log_retrace(self.title, given, "axes',
          'variants.append(made)\n        log_retrace(self.title, given, "axes'),
    ),
)  # fmt: skip
