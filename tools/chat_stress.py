"""Random templates for tools/make_chat_goldens.py: grammatical, mostly meaningful, over the variables of
tools/chat_snippets.py."""

import random

NAMES = ["s", "empty", "uni", "quoted", "n", "neg", "f", "yes", "no", "nothing", "nums", "words", "mixed", "d", "people", "lines", "messages", "missing", "v", "w"]
LITERALS = ["0", "1", "2", "-1", "7", "2.5", "0.1", "1e3", "true", "false", "none", "''", "'a'", "'b,c'", "\"it's\"", "' x '", "'é東'", "'<|im_end|>'", "'%s-%s'", "'{}:{}'",
            "[]", "[1, 2, 3]", "['a', 'B']", "{}", "{'a': 1}", "{'b': [1], 'a': {'c': none}}", "(1, 'x')", "range(4)", "'Ab cD\\n'"]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or", "+", "~", "=="]
ATTRIBUTES = ["a", "b", "C", "name", "role", "content", "nested", "x", "missing", "items", "get", "tags"]
KEYS = ["0", "1", "-1", "'a'", "'name'", "'role'", "'content'", "'nested'", "'x'", "99", "n", "true", "none"]
SLICES = ["1:", ":2", "::-1", "-2:", ":-1", "1:3", "::2", "3:0:-1", "n:", ":none"]
FILTERS = ["upper", "lower", "title", "capitalize", "trim", "length", "list", "first", "last", "sort", "unique | list", "reverse | list", "string", "int", "float", "abs", "tojson",
           "join(', ')", "join", "default('z')", "default('z', true)", "replace('a', 'x')", "round", "sum", "min", "max", "items | list", "dictsort", "map('string') | list",
           "map('upper') | list", "map(attribute='name') | list", "select | list", "reject('none') | list", "selectattr('role') | list", "wordcount", "indent(2)", "tojson(indent=1)",
           "batch(2) | list", "e", "safe", "escape", "center(9)", "truncate(5)", "select('string') | list", "map('int') | list", "sort(reverse=true)", "selectattr('age', 'gt', 26) | list",
           "groupby('city') | map('first') | list", "map('length') | list", "tojson(sort_keys=true)", "urlencode", "slice(2) | list", "count", "d('q')", "trim('a')", "map('first') | list"]
TESTS = ["defined", "undefined", "none", "string", "number", "mapping", "sequence", "iterable", "integer", "float", "boolean", "true", "false", "odd", "even", "divisibleby 2", "in [1, 'a']",
         "eq 1", "equalto 'a'", "gt 1", "lower", "upper", "callable", "sameas none", "in 'abc'", "ne none"]
METHODS = ["upper()", "strip()", "lstrip('a')", "rstrip()", "split()", "split(',')", "split(none, 1)", "splitlines()", "startswith('H')", "endswith(('d', 'x'))", "replace('l', 'L')", "title()",
           "find('o')", "count('a')", "join(words)", "removeprefix('He')", "format(1, 2)", "isdigit()", "get('a')", "get('zz', 3)", "items()", "keys() | list", "values() | list", "index(1)", "capitalize()",
           "zfill(4)", "partition(',')", "rsplit('o', 1)", "isupper()", "swapcase()", "append(1)", "center(8, '*')", "copy()"]
TEXTS = ["text", " ", "\n", "  \n", "\n  ", "é", "{", "}", "<|x|>", "a\n\n", "\t", "% }", "x\r\n", "# "]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, choices):
        return self.random.choice(choices)

    def chance(self, p):
        return self.random.random() < p

    def expr(self, depth):
        if depth <= 0:
            return self.pick(NAMES) if self.chance(0.6) else self.pick(LITERALS)
        kind = self.random.randrange(20)
        inner = lambda: self.expr(depth - 1 - self.random.randrange(2))
        if kind < 4:
            return f"{inner()} {self.pick(BINARY)} {inner()}"
        if kind < 8:
            return f"{self.group(inner())} | {self.pick(FILTERS)}"
        if kind < 10:
            return f"{self.group(inner())} is {'not ' if self.chance(0.3) else ''}{self.pick(TESTS)}"
        if kind < 12:
            return f"{self.group(inner())}.{self.pick(METHODS)}"
        if kind == 12:
            return f"{self.group(inner())}.{self.pick(ATTRIBUTES)}"
        if kind == 13:
            return f"{self.group(inner())}[{self.pick(KEYS)}]"
        if kind == 14:
            return f"{self.group(inner())}[{self.pick(SLICES)}]"
        if kind == 15:
            return f"({inner()} if {inner()}{' else ' + inner() if self.chance(0.8) else ''})"
        if kind == 16:
            return f"{self.pick(['not ', '-', '+'])}{self.group(inner())}"
        if kind == 17:
            return f"[{inner()}, {inner()}]" if self.chance(0.5) else f"({inner()}, {inner()})"
        if kind == 18:
            return f"{{'a': {inner()}, {self.pick(LITERALS)}: {inner()}}}"
        return f"({inner()})"

    def group(self, text):
        return text if text.isidentifier() or self.chance(0.2) else f"({text})"

    def sign(self):
        return self.pick(["", "", "", "-", "-", "+"]) if self.chance(0.7) else ""

    def tag(self, text):
        return f"{{%{self.sign()} {text} {self.sign()}%}}"

    def print(self, depth):
        return f"{{{{{self.pick(['', '', '-'])} {self.expr(depth)} {self.pick(['', '', '-'])}}}}}"

    def body(self, depth):
        return "".join(self.statement(depth) for _ in range(self.random.randrange(1, 4)))

    def statement(self, depth):
        kind = self.random.randrange(16)
        if depth <= 0 or kind < 4:
            return self.pick(TEXTS) if self.chance(0.45) else self.print(self.random.randrange(1, 4))
        name = self.pick(["v", "w", "s", "n", "q"])
        inner = lambda: self.body(depth - 1)
        if kind < 7:
            middle = "".join(self.tag(f"elif {self.expr(1)}") + inner() for _ in range(self.random.randrange(2)))
            other = self.tag("else") + inner() if self.chance(0.5) else ""
            return self.tag(f"if {self.expr(2)}") + inner() + middle + other + self.tag("endif")
        if kind < 10:
            iterated = self.pick(["nums", "words", "people", "messages", "d", "range(3)", "d.items()", "s", f"({self.expr(2)})"])
            test = f" if {self.pick(['x', 'x is string', 'loop', 'x != 1', 'v', self.expr(1)])}" if self.chance(0.2) else ""
            loop = self.pick(["{{ loop.index }}", "{{ loop.last }}", "{{ loop.length }}", "{{ loop.nextitem is defined }}", "{{ loop.previtem }}", "{{ loop.revindex0 }}", "{{ loop.cycle('o', 'e') }}", "{{ loop.changed(x) }}", ""])
            jump = self.pick(["{% break %}", "{% continue %}", "{% if x == 1 %}{% break %}{% endif %}", "{% if loop.first %}{% continue %}{% endif %}"]) if self.chance(0.25) else ""
            other = self.tag("else") + inner() if self.chance(0.3) else ""
            return self.tag(f"for x in {iterated}{test}") + "{{ x }}" * self.chance(0.5) + loop + inner() + jump + inner() + other + self.tag("endfor")
        if kind < 12:
            return self.tag(f"set {name} = {self.expr(2)}")
        if kind == 12:
            wanted = f" | {self.pick(['upper', 'trim', 'length', 'list'])}" if self.chance(0.3) else ""
            return self.tag(f"set {name}{wanted}") + inner() + self.tag("endset")
        if kind == 13:
            parameters = self.pick(["", "a", "a, b=1", "a=v", "x, y=x"])
            call = self.pick(["m()", "m(1)", f"m({self.expr(1)})", "m(b=2)", "m(1, 2)"])
            using = "{{ a }}{{ x }}" + self.pick(["", "{{ caller() }}", "{{ varargs }}", "{{ kwargs }}"])
            block = self.tag(f"call {call}") + inner() + self.tag("endcall") if self.chance(0.3) else "{{ " + call + " }}"
            return self.tag(f"macro m({parameters})") + using * self.chance(0.7) + inner() + self.tag("endmacro") + block
        if kind == 14:
            return self.pick([self.tag(f"with {name} = {self.expr(1)}") + inner() + self.tag("endwith"), self.tag("filter upper") + inner() + self.tag("endfilter"),
                              self.tag("generation") + inner() + self.tag("endgeneration"), f"{{#{self.sign()} {name} {self.sign()}#}}", self.tag("raw") + "{{ x }} {% y %}" + self.tag("endraw")])
        return self.tag("set ns = namespace(a=1)") + self.tag(f"set ns.{self.pick('abc')} = {self.expr(1)}") + "{{ ns.a }}{{ ns.b }}"


def templates(seed, count):
    for i in range(count):
        made = Maker(f"{seed}/{i}")
        yield made.body(2 + i % 2) if i % 4 == 0 else "{{ " + made.expr(1 + i % 4) + " }}"
