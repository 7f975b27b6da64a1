"""What is changed in a source: one operator, constant or statement at a time.

A node of the syntax tree is written anew in its place, so that other statements stay as
they are. Nothing is changed that cannot matter to a run: docstrings, annotations,
decorators, assertions (there are none but for the type checker), what is imported for
it, and the texts of errors.
"""

import ast
import hashlib
from collections import Counter
from typing import NamedTuple

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
PAIRS = (
    *(("min", "max"), ("any", "all"), ("minimum", "maximum")),
    *(("fmin", "fmax"), ("floor", "ceil")),
)
OTHER_FUNCTION = dict(PAIRS) | {second: first for first, second in PAIRS}


class Mutant(NamedTuple):
    """One change of one file.

    Attributes:
        path: of the file, from the repository's root.
        line: of the change, from 1.
        scope: qualified name of the function or class, or "" outside of any.
        operator: what kind of change it is.
        before: the text that is changed.
        after: what it becomes.
        start: offset in the file, in bytes.
        end: of the text that is replaced.
        key: identifies the change, whatever else in the file moves.
    """

    path: str
    line: int
    scope: str
    operator: str
    before: str
    after: str
    start: int
    end: int
    key: str = ""

    def apply(self, source: bytes) -> bytes:
        """Returns the changed source."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def mutants(path: str, source: bytes) -> list[Mutant]:
    """Returns all changes of a file, in the order of its lines."""
    walker = _Walker(path, source)
    walker.visit(ast.parse(source))
    seen = Counter[tuple[str, ...]]()
    keyed = []
    for one in walker.found:
        same = (one.path, one.scope, one.operator, one.before, one.after)
        digest = hashlib.sha256(repr((*same, seen[same])).encode()).hexdigest()
        seen[same] += 1
        keyed.append(one._replace(key=digest[:10]))
    return keyed


class _Walker(ast.NodeVisitor):
    def __init__(self, path: str, source: bytes) -> None:
        self._path, self._source = path, source
        lines = source.splitlines(keepends=True)
        self._starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
        self._scopes: list[str] = []
        self._depth = 0  # of functions
        self.found: list[Mutant] = []

    # What is left alone.

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Positions within it are not those of the file before Python 3.12."""

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_Raise(self, node: ast.Raise) -> None:
        self._delete(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            if isinstance(node.target, ast.Attribute | ast.Subscript):
                self._delete(node)

    def visit_If(self, node: ast.If) -> None:
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self._negate(node.test)
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id == "__all__":
            return
        if self._depth and isinstance(target, ast.Attribute | ast.Subscript):
            self._delete(node)
        self.generic_visit(node)

    # Scopes.

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._scopes.append(node.name)
        for one in node.body:
            self.visit(one)
        self._scopes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._scopes.append(node.name)
        for one in (*node.args.defaults, *node.args.kw_defaults):
            if one is not None:
                self.visit(one)
        self._depth += 1
        for one in node.body:
            self.visit(one)
        self._depth -= 1
        self._scopes.pop()

    # What is changed.

    def visit_Compare(self, node: ast.Compare) -> None:
        for number, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                ops = [*node.ops[:number], other(), *node.ops[number + 1 :]]
                new = ast.Compare(node.left, ops, node.comparators)
                self._replace(node, new, "comparison")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = any(_is_text(side) for side in (node.left, node.right))
        if type(node.op) in ARITHMETIC and not texts:
            new = ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
            self._replace(node, new, "arithmetic")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in ARITHMETIC and not _is_text(node.value):
            new = ast.AugAssign(node.target, ARITHMETIC[type(node.op)](), node.value)
            self._add(node, ast.unparse(new), "arithmetic")
        self._delete(node)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._replace(node, ast.BoolOp(other, node.values), "and, or")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            self._replace(node, node.operand, "sign")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        others: list[complex] = []
        if isinstance(value, bool):
            others = [not value]
        elif isinstance(value, int):
            others = [value + 1, value - 1]
        elif isinstance(value, float):
            others = [value + 1, 0.0 if value else -1.0]
        for other in others:
            self._replace(node, ast.Constant(other), "constant")

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            if getattr(node.value, "value", ...) is not None:
                self._replace(node.value, ast.Constant(None), "returned value")
            self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a docstring, or ...
        if not isinstance(node.value, ast.Yield | ast.YieldFrom):
            self._delete(node)
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        if not all(isinstance(one, ast.Name) for one in node.targets):
            self._delete(node)  # a name only says that an argument is not used

    def visit_Break(self, node: ast.Break) -> None:
        self._add(node, "continue", "break, continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add(node, "break", "break, continue")

    def visit_While(self, node: ast.While) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._negate(test)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        starred = any(isinstance(one, ast.Starred) for one in node.args)
        if name in OTHER_FUNCTION:
            self._rename(node.func, OTHER_FUNCTION[name])
        elif len(node.args) >= 2 and not starred and name != "isinstance":
            first, second, *rest = node.args
            if ast.dump(first) != ast.dump(second):
                new = ast.Call(node.func, [second, first, *rest], node.keywords)
                self._replace(node, new, "arguments swapped")
        self.generic_visit(node)

    # How.

    def _negate(self, test: ast.expr) -> None:
        simple = isinstance(test, ast.Compare) and len(test.ops) == 1
        if not simple and not isinstance(test, ast.UnaryOp | ast.Constant):
            self._replace(test, ast.UnaryOp(ast.Not(), test), "condition negated")

    def _rename(self, function: ast.expr, name: str) -> None:
        new: ast.expr = ast.Name(name)
        if isinstance(function, ast.Attribute):
            new = ast.Attribute(function.value, name)
        self._replace(function, new, "function")

    def _delete(self, node: ast.stmt) -> None:
        self._add(node, "pass", "statement deleted")

    def _replace(self, node: ast.expr, new: ast.expr, kind: str) -> None:
        self._add(node, f"({ast.unparse(ast.fix_missing_locations(new))})", kind)

    def _add(self, node: ast.expr | ast.stmt, text: str, kind: str) -> None:
        start = self._starts[node.lineno - 1] + node.col_offset
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        before = " ".join(self._source[start:end].decode().split())
        scope = ".".join(self._scopes)
        place = (self._path, node.lineno, scope, kind)
        self.found.append(Mutant(*place, before, text, start, end))


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return text or isinstance(node, ast.JoinedStr)
