"""What is changed in a source: one operator, constant or statement at a time.

Changes are made in the text at the place of a node of its syntax tree, so that every
other line stays as it is. Nothing is changed that cannot matter to a run: docstrings,
annotations, decorators, assertions (there are none but for the type checker), what is
imported for it, and the texts of errors.
"""

import ast
import hashlib
from collections import Counter
from typing import NamedTuple

COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "/",
    ast.Mod: "//",
    ast.Pow: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.BitXor: "|",
    ast.LShift: ">>",
    ast.RShift: "<<",
}
SIGNS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.MatMult: "@",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
OTHER_FUNCTION = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "minimum": "maximum",
    "maximum": "minimum",
    "fmin": "fmax",
    "fmax": "fmin",
    "floor": "ceil",
    "ceil": "floor",
}


class Mutant(NamedTuple):
    """One change of one file.

    Attributes:
        path: of the file, from the repository's root.
        line: of the change, from 1.
        scope: qualified name of the function or class, or "" outside of any.
        operator: what kind of change it is.
        before: the text that is changed, and what stands around it.
        after: what it becomes.
        start: offset in the file, in bytes.
        end: of the text that is replaced.
        text: that replaces it.
        lines: first and last line of the statement, or of a compound one's header.
        imported: whether the line runs when the module is imported.
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
    text: str
    lines: tuple[int, int]
    imported: bool
    key: str = ""

    def apply(self, source: bytes) -> bytes:
        """Returns the changed source."""
        return source[: self.start] + self.text.encode() + source[self.end :]


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
        starts = [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._starts = starts
        self._scopes: list[str] = []
        self._depth = 0  # of functions
        self._statement: ast.stmt | None = None
        self.found: list[Mutant] = []

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            before, self._statement = self._statement, node
            super().visit(node)
            self._statement = before
        else:
            super().visit(node)

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
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
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
        operands = [node.left, *node.comparators]
        for number, operator in enumerate(node.ops):
            for sign in COMPARISONS[type(operator)]:
                left, right = operands[number], operands[number + 1]
                self._between(node, left, right, operator, sign, "comparison")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = any(_is_text(side) for side in (node.left, node.right))
        if type(node.op) in ARITHMETIC and not texts:
            sign = ARITHMETIC[type(node.op)]
            self._between(node, node.left, node.right, node.op, sign, "arithmetic")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in ARITHMETIC and not _is_text(node.value):
            sign = ARITHMETIC[type(node.op)]
            self._between(node, node.target, node.value, node.op, sign, "arithmetic")
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
        if isinstance(value, bool):
            others = [not value]
        elif isinstance(value, int):
            others = [value + 1, *([value - 1] if value else [-1])]
        elif isinstance(value, float):
            others = [value + 1, 0.0 if value else -1.0]
        else:
            return
        for other in others:
            self._replace(node, ast.Constant(other), "constant")

    def visit_Return(self, node: ast.Return) -> None:
        value = node.value
        if value is None:
            return
        if not (isinstance(value, ast.Constant) and value.value is None):
            self._replace(value, ast.Constant(None), "returned value")
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
        self._text(node, "continue", "break, continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._text(node, "break", "break, continue")

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
        name = node.func
        called = name.attr if isinstance(name, ast.Attribute) else None
        called = name.id if isinstance(name, ast.Name) else called
        if called in OTHER_FUNCTION:
            other = OTHER_FUNCTION[called]
            end = self._offset(name.end_lineno, name.end_col_offset)
            self._add(node, end - len(called), end, other, "function", called, other)
        starred = any(isinstance(one, ast.Starred) for one in node.args)
        if len(node.args) >= 2 and not starred and called not in OTHER_FUNCTION:
            first, second, *rest = node.args
            if ast.dump(first) != ast.dump(second) and called != "isinstance":
                args = [second, first, *rest]
                new = ast.Call(node.func, args, node.keywords)
                self._replace(node, new, "arguments swapped")
        self.generic_visit(node)

    # How.

    def _offset(self, line: int | None, column: int | None) -> int:
        assert line is not None
        assert column is not None
        return self._starts[line - 1] + column

    def _span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, ast.expr | ast.stmt)
        start = self._offset(node.lineno, node.col_offset)
        return start, self._offset(node.end_lineno, node.end_col_offset)

    def _negate(self, test: ast.expr) -> None:
        simple = isinstance(test, ast.Compare) and len(test.ops) == 1
        if simple or isinstance(test, ast.UnaryOp | ast.Constant):
            return  # changed as such
        self._replace(test, ast.UnaryOp(ast.Not(), test), "condition negated")

    def _between(
        self,
        node: ast.AST,
        left: ast.AST,
        right: ast.AST,
        operator: ast.AST,
        sign: str,
        kind: str,
    ) -> None:
        """Changes an operator between two operands, whatever brackets are there."""
        start, end = self._span(left)[1], self._span(right)[0]
        old = SIGNS[type(operator)].encode()  # type: ignore[index]
        middle = self._source[start:end]
        at = start + middle.index(old)
        self._add(
            node, at, at + len(old), sign, kind, *self._shown(node, at, old, sign)
        )

    def _shown(self, node: ast.AST, at: int, old: bytes, new: str) -> tuple[str, str]:
        start, end = self._span(node)
        source = self._source
        after = source[start:at] + new.encode() + source[at + len(old) : end]
        return _flat(source[start:end]), _flat(after)

    def _replace(self, node: ast.AST, new: ast.expr, kind: str) -> None:
        self._text(node, f"({ast.unparse(ast.fix_missing_locations(new))})", kind)

    def _text(self, node: ast.AST, text: str, kind: str) -> None:
        start, end = self._span(node)
        before = _flat(self._source[start:end])
        self._add(node, start, end, text, kind, before, text)

    def _delete(self, node: ast.stmt) -> None:
        self._text(node, "pass", "statement deleted")

    def _add(
        self,
        node: ast.AST,
        start: int,
        end: int,
        text: str,
        kind: str,
        before: str,
        after: str,
    ) -> None:
        statement = self._statement
        assert statement is not None
        line = self._source.count(b"\n", 0, start) + 1
        last = statement.end_lineno or line
        body = getattr(statement, "body", None)
        if isinstance(body, list) and body:
            last = max(statement.lineno, body[0].lineno - 1)
        if len(before) < 25 and kind in ("constant", "function", "sign"):
            whole = _flat(self._source.splitlines()[line - 1])
            before, after = f"{before} in {whole}", after
        self.found.append(
            Mutant(
                path=self._path,
                line=line,
                scope=".".join(self._scopes),
                operator=kind,
                before=before,
                after=after,
                start=start,
                end=end,
                text=text,
                lines=(statement.lineno, max(line, last)),
                imported=self._depth == 0,
            )
        )


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return text or isinstance(node, ast.JoinedStr)


def _flat(text: bytes) -> str:
    return " ".join(text.decode().split())
