"""The step to tile function of a kernel, in a form that a host can run.

The function is read from its source, so it stays the one that the kernel calls.
It may assign names and must end in a return; expressions are whole numbers,
parameters, earlier names, + - * // %, and min and max of two. What comes out is
nested lists: a number, a name, or an operation and its two operands.
"""

import ast
import inspect
import textwrap

OPERATIONS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.Mod: "%"}


class OrderError(ValueError):
    """The function does something that a host is not told of."""

    def __init__(self, function, node, why):
        super().__init__(f"{function}, line {getattr(node, 'lineno', '?')}: {why}; "
                         "an order is assignments and a return of + - * // % min max")


def order_of(function, constants):
    """The order as build.py writes it, for a plain function of step, tiles_m,
    tiles_n and what constants holds."""
    source = textwrap.dedent(inspect.getsource(function))
    definition = next(n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef))
    name = definition.name
    parameters = [a.arg for a in definition.args.args]
    if parameters[:3] != ["step", "tiles_m", "tiles_n"] or set(parameters[3:]) != set(constants):
        raise OrderError(name, definition,
                         f"its parameters are {parameters}, want step, tiles_m, tiles_n, {list(constants)}")
    lets = []
    for statement in definition.body:
        if isinstance(statement, ast.Assign) and [type(t) for t in statement.targets] == [ast.Name]:
            lets.append([statement.targets[0].id, expression(name, statement.value)])
        elif isinstance(statement, ast.Return) and statement is definition.body[-1]:
            return {"function": name, "constants": constants, "lets": lets, "tile": expression(name, statement.value)}
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):  # a docstring
            raise OrderError(name, statement, f"{type(statement).__name__} is none of these")
    raise OrderError(name, definition, "it does not end in a return")


def expression(name, node):
    match node:
        case ast.Constant(value=int() as value):
            return value
        case ast.Name(id=identifier):
            return identifier
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATIONS:
            return [OPERATIONS[type(op)], expression(name, left), expression(name, right)]
        case ast.Call(func=ast.Name(id="min" | "max" as which), args=[left, right], keywords=[]):
            return [which, expression(name, left), expression(name, right)]
    raise OrderError(name, node, f"{ast.unparse(node)} is none of these")
