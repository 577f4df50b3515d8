"""A grammar, in GBNF, of the queries that a schema allows: what is not there cannot be written. Pure.

A column stands only where its table is in the FROM of the same SELECT: as table.column, or by its name alone
where no other table of that FROM has one of that name. A grammar cannot look ahead, so each set of tables
that joins tie together has rules of its own, and each selected column narrows the sets that are left. Tables
keep their names and are joined by the conditions known for them; a table joined with itself has two aliases.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from core.backends.prompting.replies import literal as terminal
from core.backends.sql.database import Column, DatabaseTable
from core.backends.sql.joins import Join, groups
from core.backends.sql.names import literal, written

SETS = 64  # sets of tables that one SELECT may join
JOINED = 4  # tables in one SELECT
MAX_COLUMNS_WITH_NESTED = 150  # columns in all, up to which each text column has nested SELECTs of its own
MAX_GRAMMAR_CHARS = 300_000  # characters of a grammar; beyond it there is none

Kind = Literal["text", "number", "any"]
Values = Mapping[tuple[str, str], Sequence[str]]  # by table and column: all that it may be compared with
Scope = frozenset[int]

_COMMON = """\
num ::= "-"? [0-9] [0-9]* ("." [0-9] [0-9]*)?
text ::= "'" ([^'\\x00-\\x1F] | "''")* "'"
cmp ::= " = " | " <> " | " < " | " > " | " <= " | " >= "
less ::= " < " | " > " | " <= " | " >= "
same ::= " = " | " <> "
op ::= " + " | " - " | " * " | " / "
agg ::= "SUM(" | "AVG(" | "MIN(" | "MAX("
some ::= "DISTINCT "?
limit ::= " LIMIT " [1-9] [0-9]? [0-9]?
way ::= (" ASC" | " DESC")?
set ::= " UNION " | " UNION ALL " | " EXCEPT " | " INTERSECT "
isnull ::= " IS NULL" | " IS NOT NULL"
within ::= " IN (" | " NOT IN ("
joint ::= " AND " | " OR "
"""


@dataclass(frozen=True, slots=True)
class _Source:
    """A table in a FROM: under its own name, or as one of two for a join with itself."""

    table: DatabaseTable
    name: str  # before the dot of its columns
    stated: str  # in FROM

    @property
    def plain(self) -> bool:
        """Return True if the source has the table's own name."""
        return self.name == self.stated

    def column(self, column: Column) -> str:
        """Write a column as a query names it."""
        return f"{self.name}.{written(column.name)}"


@dataclass(slots=True)
class _GrammarRules:
    """The rules made so far. A rule that is asked for twice is made once."""

    sources: Sequence[_Source]
    conditions: Mapping[tuple[int, int], Sequence[str]]
    scopes: Sequence[Scope]
    values: Values
    alias: str
    alike: Mapping[tuple[int, str], int]  # by source and column: the group of those that hold the same things
    rules: dict[str, str] = field(default_factory=dict)

    def rule(self, name: str, *ways: str) -> None:
        """Set what a rule stands for."""
        self.rules[name] = " | ".join(dict.fromkeys(ways))

    def short(self, source: _Source) -> list[Column]:
        """Return the columns that never need a table name: no other table has one of that name."""
        if not source.plain:
            return []
        tables = [other.table for other in self.sources if other.plain and other is not source]
        others = {column.name.lower() for table in tables for column in table.columns}
        return [column for column in source.table.columns if column.name.lower() not in others]


def grammar(tables: Sequence[DatabaseTable], found: Iterable[Join] = (), values: Values | None = None) -> str:
    """Return the grammar of SELECTs over `tables`, joined as `found` says; "" if it would be too large, or a
    name cannot be written in it.

    It has aggregates, arithmetic, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, nested SELECTs, set operations
    over one column, and aggregates over a grouped SELECT. A column is compared only with a nested SELECT of
    the same kind of content: of a joined column, of itself, or of numbers. `values` has the text columns
    whose values for the question are known: `=`, `<>` and IN accept only those, LIKE any text.
    """
    # No name of theirs has a character that ends a line or a text.
    named = [(one, "".join((one.name, *(column.name for column in one.columns)))) for one in tables]
    usable = [table for table, names in named if table.columns and names.isprintable()]
    if not usable:
        return ""
    writer = _prepared(usable, tuple(found), values or {})
    for at in range(len(writer.sources)):
        _of_source(writer, at)
    for scope in writer.scopes:
        _of_scope(writer, scope)
    _nested(writer)
    _selects(writer)
    text = _COMMON + "".join(f"{name} ::= {ways}\n" for name, ways in writer.rules.items())
    return text if len(text) <= MAX_GRAMMAR_CHARS else ""


def kind(column: Column) -> Kind:
    """Return the kind of value a column is compared with: text, numbers, or either if its type is not
    clear.
    """
    if column.textual:
        return "text"
    upper = column.type.upper()
    numbers = ("INT", "REAL", "FLOA", "DOUB", "NUM", "DEC")
    return "number" if any(sign in upper for sign in numbers) else "any"


def _prepared(tables: Sequence[DatabaseTable], found: tuple[Join, ...], values: Values) -> _GrammarRules:
    """Prepare the sources, the conditions that join two of them, and the sets of sources joined this way."""
    sources = [_Source(table, written(table.name), written(table.name)) for table in tables]
    taken = {table.name.lower() for table in tables}
    index = {table.name: at for at, table in reversed(list(enumerate(tables)))}
    places = [
        [(index[table], column) for table, column in group if table in index] for group in groups(found)
    ]
    places = [named for named in places if len(named) > 1]
    for at in range(len(tables)):
        own = [[column for one, column in named if one == at] for named in places]
        if any(len(columns) > 1 for columns in own):  # a column of it points at another one of it
            for number in (1, 2):
                name = written(_free(f"{tables[at].name}_{number}", taken))
                sources.append(_Source(tables[at], name, f"{sources[at].stated} AS {name}"))
            first = len(sources) - 2
            for named, columns in zip(places, own, strict=True):
                named += [(first + n, column) for n in (0, 1) for column in columns]
    conditions: dict[tuple[int, int], list[str]] = {}
    for named in places:
        for (one, mine), (other, theirs) in itertools.permutations(named, 2):
            # Two tables may share one FROM, or both names of one table.
            kinds = [0 if at < len(tables) else 1 + (at - len(tables)) // 2 for at in (one, other)]
            if one != other and kinds[0] == kinds[1]:
                condition = f"{sources[one].name}.{written(mine)} = {sources[other].name}.{written(theirs)}"
                conditions.setdefault((one, other), []).append(condition)
    alike = {place: number for number, named in enumerate(places) for place in named}
    scopes = _scopes(len(sources), len(tables), conditions)
    return _GrammarRules(sources, conditions, scopes, values, _free("d", taken), alike)


def _free(name: str, taken: set[str]) -> str:
    while name.lower() in taken:
        name += "_"
    taken.add(name.lower())
    return name


def _scopes(
    sources: int, tables: int, conditions: Mapping[tuple[int, int], Sequence[str]]
) -> tuple[Scope, ...]:
    """Return the single tables, then larger and larger joined sets, then self-joins."""
    found: dict[Scope, None] = {frozenset((at,)): None for at in range(tables)}
    pairs = [frozenset((at, at + 1)) for at in range(tables, sources, 2) if conditions.get((at, at + 1))]
    level = list(found)
    for _ in range(JOINED - 1):
        pairs_of = ((scope, at) for scope in level for at in range(tables) if at not in scope)
        grown = (scope | {at} for scope, at in pairs_of if any((one, at) in conditions for one in scope))
        level = list(dict.fromkeys(grown))
        for scope in level:
            if len(found) + len(pairs) < SETS:
                found.setdefault(scope)
    return (*found, *pairs)


def _of_source(writer: _GrammarRules, at: int) -> None:
    """Add the rules of one source: its columns, values computed from them, and conditions on them.

    Rules that end in "s" are for a SELECT from this table alone, where each column may omit its table;
    elsewhere only columns with a unique name may. Those in "u" begin with a column of which only the first
    holds.
    """
    source = writer.sources[at]
    every, short = source.table.columns, writer.short(source)
    full, bare = [(source.column(one), one) for one in every], [(written(one.name), one) for one in every]
    _values(writer, at, "", full + [pair for pair in bare if pair[1] in short])
    writer.rule(f"p{at}", *_conditions(writer, at, "", short))
    if source.plain:
        _values(writer, at, "s", full + bare)
        writer.rule(f"p{at}s", *_conditions(writer, at, "s", every))
        if alone := [pair for pair in bare if pair[1] not in short]:
            _values(writer, at, "u", alone, "s")


def _values(
    writer: _GrammarRules, at: int, mode: str, named: Sequence[tuple[str, Column]], after: str | None = None
) -> None:
    """Columns, numbers, expressions, aggregates and what is selected, of the columns as they are `named`;
    what follows the first column of an expression is of the mode `after`.
    """
    rule, of, then = writer.rule, f"{at}{mode}", f"{at}{mode if after is None else after}"
    numbers = [terminal(name) for name, one in named if kind(one) != "text"]
    texts = [terminal(name) for name, one in named if kind(one) == "text"]
    rule(f"c{of}", *(terminal(name) for name, _ in named))
    counted = f'"COUNT(" some c{of} ")"'
    if numbers:
        rule(f"n{of}", *numbers)
        rule(f"en{of}", f"n{of} (op (n{then} | num))?")
        rule(f"an{of}", counted, f'agg some en{of} ")"')
        texts.append(f"en{of}")
    else:
        rule(f"an{of}", counted)
    rule(f"e{of}", *texts)
    rule(f"a{of}", counted, f'agg some e{of} ")"')
    rule(f"i{of}", f"e{of}", f'a{of} (op (a{then} | num | "(" subn ")"))?')


def _conditions(writer: _GrammarRules, at: int, mode: str, short: Sequence[Column]) -> list[str]:
    """One condition on a column, by what it may be compared with; those in `short` may lack their table."""
    source, of = writer.sources[at], f"{at}{mode}"
    by: dict[str, list[str]] = {}
    for number, column in enumerate(source.table.columns):
        names = [terminal(source.column(column))]
        names += [terminal(written(column.name))] if column in short else []
        nested = _nested_name(writer, at, number)
        closed = writer.values.get((source.table.name, column.name))
        if kind(column) == "text":
            known = [terminal(literal(one)) for one in closed or () if one.isprintable()]
            group = writer.alike.get((at, column.name))
            values = f"({' | '.join(['text'] if closed is None else known)})"
            same = [one for one in source.table.columns if writer.alike.get((at, one.name), -1) == group]
            partners = [terminal(source.column(one)) for one in same if one is not column]
            any_value = closed is None or known
            alone = [*([values] if any_value else []), *partners, f'"(" {nested} ")"']
            listed = f'{nested} | {values} (", " {values})*' if any_value else nested
            tail = (
                f'same ({" | ".join(alone)}) | less (text | num | "(" {nested} ")")'
                ' | (" LIKE " | " NOT LIKE ") text | " BETWEEN " text " AND " text'
                f' | within ({listed}) ")" | isnull'
            )
        elif kind(column) == "any":
            tail = (
                f'cmp (text | num | c{of} | "(" sub ")") | " LIKE " text'
                ' | " BETWEEN " (num " AND " num | text " AND " text)'
                ' | within (sub | num (", " num)* | text (", " text)*) ")" | isnull'
            )
        else:
            tail = (
                f'cmp (num | n{of} | "(" {nested} ")") | " BETWEEN " num " AND " num'
                f' | within ({nested} | num (", " num)*) ")" | isnull'
            )
        by.setdefault(tail, []).extend(names)
    made = []
    for number, (tail, names) in enumerate(by.items()):
        writer.rule(f"t{of}x{number}", tail)
        made.append(f"({' | '.join(names)}) t{of}x{number}")
    return made


def _nested_name(writer: _GrammarRules, at: int, number: int) -> str:
    """Return the rule of the nested SELECTs that a column may be compared with: of columns with the same
    content, of itself if there are none, of numbers if it is numeric.
    """
    source = writer.sources[at]
    column = source.table.columns[number]
    group = writer.alike.get((at, column.name))
    if group is not None:
        return f"subg{group}"
    if kind(column) == "number":
        return "subn"
    columns = sum(len(one.table.columns) for one in writer.sources)
    return f"sub{at}x{number}" if kind(column) == "text" and columns <= MAX_COLUMNS_WITH_NESTED else "sub"


def _nested(writer: _GrammarRules) -> None:
    """Add the rules of nested SELECTs by their result: numbers, or the content of a group of columns or one
    column.
    """
    ways: dict[str, list[str]] = {"subn": []}
    for at, source in enumerate(writer.sources):
        short = writer.short(source)
        for of, then in ((f"{at}", f"v{at}"), (f"{at}u", f"z{at}")):
            if f"c{of}" in writer.rules:
                first = f"(en{of} | an{of})" if f"en{of}" in writer.rules else f"an{of}"
                ways["subn"].append(f"{first} {then}")
        for number, column in enumerate(source.table.columns):
            rule = _nested_name(writer, at, number)
            if rule in ("sub", "subn"):
                continue
            names = [source.column(column), *([written(column.name)] if column in short else [])]
            some = f"({' | '.join(map(terminal, names))})"
            told = ways.setdefault(rule, [])
            told.append(f'({some} | ("MIN(" | "MAX(") {some} ")") v{at}')
            if source.plain and column not in short:
                bare = terminal(written(column.name))
                told.append(f'({bare} | ("MIN(" | "MAX(") {bare} ")") z{at}')
    for rule, given in ways.items():
        every = f"some ({' | '.join(given)})"
        counted = f'({every} | "COUNT(*)" vall | derived)' if rule == "subn" else every
        writer.rule(rule, f'"SELECT " {counted}')


def _of_scope(writer: _GrammarRules, scope: Scope) -> None:
    """Add the rules of what follows the selected columns of a SELECT from the tables of `scope`."""
    rule, name = writer.rule, _name(scope)
    members = [f"{at}s" if len(scope) == 1 and writer.sources[at].plain else f"{at}" for at in sorted(scope)]
    numbers = [f"n{one}" for one in members if f"n{one}" in writer.rules]
    crossed = [f"{one} cmp {other}" for one, other in itertools.permutations(numbers, 2)]
    pairs = itertools.combinations(sorted(scope), 2)
    crossed += [_tied(writer, *pair) for pair in pairs if pair in writer.conditions]
    rule(f"f{name}", *_from(writer, scope))
    rule(f"m{name}", *(f"p{one}" for one in members), *crossed)
    rule(f"k{name}", f"m{name}", f'"(" m{name} (joint m{name})+ ")"')
    rule(f"w{name}", f"k{name} (joint k{name})*")
    rule(f"b{name}", *(f"c{one}" for one in members))
    rule(f"g{name}", '"COUNT(*)"', *(f"a{one}" for one in members))
    rule(f"o{name}", *(f"e{one}" for one in members))
    rule(f"h{name}", f'g{name} (cmp (num | "(" subn ")") | " BETWEEN " num " AND " num)')
    rule(f"q{name}", f'" GROUP BY " b{name} (", " b{name})* (" HAVING " h{name} (joint h{name})*)?')
    rule(f"d{name}", f'(" ORDER BY " o{name} way (", " o{name} way)*)? limit?')
    either = f"(g{name} | o{name}) way"
    rule(f"j{name}", f'(" ORDER BY " {either} (", " {either})*)? limit?')
    rule(f"l{name}", f'" FROM " f{name} (" WHERE " w{name})?')
    rule(f"u{name}", f"l{name} q{name}?")  # without an order, which only the whole of a set operation has
    rule(f"z{name}", f"l{name} (q{name} j{name} | d{name})")
    rule(f"y{name}", f"l{name} (q{name} (j{name} | set other) | d{name} | set other)")


def _from(writer: _GrammarRules, scope: Scope) -> list[str]:
    """Return the ways to write the FROM of a scope: a table, or a smaller scope joined with one more
    table.
    """
    if len(scope) == 1:
        (at,) = scope
        return [terminal(writer.sources[at].stated)]
    made = []
    for at in sorted(scope):
        rest = scope - {at}
        tied = [one for one in sorted(rest) if (one, at) in writer.conditions]
        if tied and (len(rest) == 1 or rest in writer.scopes):
            start = terminal(writer.sources[min(rest)].stated) if len(rest) == 1 else f"f{_name(rest)}"
            ons = " | ".join(_tied(writer, *sorted((one, at))) for one in tied)
            other = terminal(writer.sources[at].stated)
            made.append(f'{start} (" JOIN " | " LEFT JOIN ") {other} " ON " ({ons})')
    return made


def _tied(writer: _GrammarRules, low: int, high: int) -> str:
    """Return the rule of the conditions that join two sources."""
    name = f"on{low}x{high}"
    writer.rule(name, *map(terminal, (*writer.conditions[low, high], *writer.conditions[high, low])))
    return name


def _selects(writer: _GrammarRules) -> None:
    """Add the rules of SELECTs: each selected column narrows the tables that it can come from.

    `root` is the whole query, `sub` a nested one with one column, `other` the second one of a set operation,
    `derived` an aggregate over a grouped one.
    """
    rule, scopes = writer.rule, writer.scopes
    ways: dict[str, list[str]] = {"root": [], "sub": [], "other": [], "derived": []}
    for at in range(len(writer.sources)):
        one = frozenset((at,))
        within = [_name(scope) for scope in scopes if one <= scope]
        if not within:
            continue
        rule(f"v{at}", *(f"z{name}" for name in within))
        rule(f"s{at}", *(f"u{name}" for name in within))
        ways["root"].append(f"i{at} {_after(writer, one, 1)}")
        ways["sub"].append(f"i{at} v{at}")
        ways["other"].append(f"i{at} s{at}")
        ways["derived"].append(f'(c{at} ", " (e{at} | a{at} | "COUNT(*)") | e{at} | a{at}) " AS n" v{at}')
        if f"i{at}u" in writer.rules:  # a column that other tables have, too: this table alone is meant
            rule(f"r{at}s", f'", " (i{at}s | "COUNT(*)") r{at}s', f"z{at}")
            ways["root"].append(f'i{at}u (y{at} | ", " (i{at}s | "COUNT(*)") r{at}s)')
            ways["sub"].append(f"i{at}u z{at}")
            ways["other"].append(f"i{at}u u{at}")
            second = f'c{at}u ", " (e{at}s | a{at}s | "COUNT(*)")'
            ways["derived"].append(f'({second} | e{at}u | a{at}u) " AS n" z{at}')
    for pair in _products(writer):
        ways["root"].append(f"x{_name(pair)} {_after(writer, pair, 1)}")
    rule("vall", *(f"z{_name(scope)}" for scope in scopes))
    rule("sall", *(f"u{_name(scope)}" for scope in scopes))
    told = {name: " | ".join(some) for name, some in ways.items()}
    inner = f'"SELECT " (some ({told["derived"]}) | "COUNT(*) AS n" vall)'
    rule("derived", f'("COUNT(" | agg) "{writer.alias}.n) FROM (" {inner} ") AS {writer.alias}"')
    rule("sub", f'"SELECT " (some ({told["sub"]}) | "COUNT(*)" vall | derived)')
    rule("other", f'"SELECT " (some ({told["other"]}) | "COUNT(*)" sall)')
    counted = f'"COUNT(*)" {_after(writer, frozenset(), 1)} | derived | "(" subn ")" op "(" subn ")"'
    rule("root", f'"SELECT " (some ({told["root"]}) | {counted})')


def _after(writer: _GrammarRules, seen: Scope, count: int) -> str:
    """Return the rule of what may follow `count` selected columns (2: or more) of the tables `seen`: another
    column, or their FROM.
    """
    name = f"r{_name(seen)}x{count}"
    if name in writer.rules:
        return name
    writer.rules[name] = ""  # being made: it may follow itself
    more = [(f"i{at}", seen | {at}) for at in range(len(writer.sources))]
    more += [(f"x{_name(pair)}", seen | pair) for pair in _products(writer)]
    more.append(('"COUNT(*)"', seen))
    fits = [(item, grown) for item, grown in more if any(grown <= scope for scope in writer.scopes)]
    ways = [f"{item} {_after(writer, grown, 2)}" for item, grown in fits]
    ends = [f"{'y' if count == 1 else 'z'}{_name(scope)}" for scope in writer.scopes if seen <= scope]
    writer.rule(name, f'", " ({" | ".join(ways)})', *ends)
    return name


def _products(writer: _GrammarRules) -> list[Scope]:
    """Pairs of sources whose numbers may be computed with each other; their rule is made on the way."""
    found = []
    for pair in writer.scopes:
        if len(pair) == 2 and all(f"n{at}" in writer.rules for at in pair):
            one, other = sorted(pair)
            made = f"(n{one} op n{other} | n{other} op n{one})"
            writer.rule(f"x{_name(pair)}", made, f'agg {made} ")"')
            found.append(pair)
    return found


def _name(scope: Scope) -> str:
    """Return a scope's part of a rule name."""
    return "x".join(map(str, sorted(scope))) if scope else "all"
