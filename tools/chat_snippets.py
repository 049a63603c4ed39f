"""Small templates for tools/make_chat_goldens.py, each after one thing that Jinja or Python does in its own way."""

VARIABLES = {
    "s": "Hello, World",
    "empty": "",
    "uni": "Grüße, Ωmega ΣΑΣ ßtraße 東京 🎉",
    "quoted": "it's \"both\"\n\ttab\\ \u007f\u00e9\u200b",
    "n": 7,
    "neg": -7,
    "f": 2.5,
    "big": 18446744073709551615,
    "yes": True,
    "no": False,
    "nothing": None,
    "nums": [3, 1, 2],
    "words": ["b", "A", "c", "B", "a"],
    "mixed": [1, "1", 1.0, True, None, [1], {"a": 1}],
    "d": {"b": 2, "a": 1, "C": 3, "items": "shadow", "nested": {"x": [1, {"y": "deep"}]}},
    "people": [
        {"name": "Ann", "age": 30, "city": "Rome", "tags": ["x"]},
        {"name": "bob", "age": 25, "city": "rome"},
        {"name": "Cat", "age": 30, "city": "Oslo", "tags": []},
    ],
    "html": "<a href=\"x\">T&C's</a>",
    "lines": "one\n  two\n\nthree\r\nfour",
    "messages": [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
    ],
}


def in_braces(text):
    return ["{{ " + line + " }}" for line in text.strip("\n").split("\n") if line]


EXPRESSIONS = in_braces(r"""
1 + 2 * 3 - 4 / 2
7 // 2, -7 // 2, 7 // -2, 7 % 3, -7 % 3, 7 % -3
7.5 // 2, -7.5 // 2, 7.5 % 2, -7.5 % 2, 7.5 % -2
2 ** 10, 2 ** -1, 2 ** 0.5, (-2) ** 2, -2 ** 2, 2 ** 3 ** 2
10 / 4, 10 / 5, 1 / 3, 2 / 3
0.1 + 0.2, 1e16, 1e15, 1e-4, 1e-5, 123456789012345678.0, 1.5e300, 100.0, 1e22
1_000, 0x1F, 0o17, 0b101, 1_0.5_0, 1e3, 00
-n, +n, - -n, -f, -yes, +no
n + f, n * f, n / 2, n - 0.5
yes + yes, yes * 3, no - 1
9223372036854775807 + 1, -9223372036854775808 - 1, big, big + 1, big * 2
10 ** 18, 10 ** 30
1 / 0
1 // 0
1 % 0
1.0 / 0
0 ** -1
1e308 * 10, -1e308 * 10
n == 7, n == 7.0, yes == 1, no == 0, '1' == 1, none == none, none == false
1 < 2 < 3, 1 < 3 < 2, 3 > 2 > 1 > 0, 1 == 1.0 == yes
1 < 2 == true, (1 < 2) == true
'a' < 'b', 'B' < 'a', 'abc' < 'abd', '' < 'a', 'é' > 'z', '🎉' > '￿'
[1, 2] < [1, 3], [1] < [1, 0], (1, 2) == (1, 2), [1, 2] == (1, 2), [] == []
{'a': 1} == {'a': 1.0}, {'a': 1, 'b': 2} == {'b': 2, 'a': 1}
1 < 'a'
none < 1
[1] < (1,)
{} < {}
1 in [1, 2], 3 in nums, 'b' in d, 2 in d, 'ell' in s, '' in s, 'x' not in s
1 in 'abc'
1 in 5
'a' in none
[1] in d
'a' in missing, 1 in missing
true in [1], 1.0 in [1], none in [none]
1 in (1, 2), 5 in range(10), 'x' in range(3)
not 1 in [1], not yes, not not yes, not ''
yes and no, yes or no, 0 or 'x', '' and 'y', none or 0 or [], 1 and 2
no or missing, missing or 'default'
'a' ~ 1 ~ none ~ true ~ 1.5 ~ [1, 'x'] ~ missing
'a' + 'b', 'ab' * 3, 3 * 'ab', 'x' * 0, 'x' * -1
'a' + 1
1 + 'a'
'a' + none
none + none
[1] + [2], (1,) + (2,), [0] * 3, 2 * [1, 2], (1,) * 2
[1] + (2,)
'a' * 'b'
'a' * 1.5
{} + {}
[1, 2, 3][0], [1, 2, 3][-1], (1, 2)[1], 'abc'[1], 'abc'[-1], uni[0], uni[-1], uni[-3]
[1][5], 'a'[5], [1][-5], [1]['x'], [1][1.0], [1][none], 'abc'['x']
nums[1:], nums[:1], nums[::2], nums[::-1], nums[-2:], nums[5:], nums[:-1], nums[1:2]
s[1:4], s[::-1], s[-3:], s[::3], s[10:2:-2], s[:100], s[-100:3], uni[2:9], uni[::-1], uni[5:1:-1]
nums[none:none], nums[none:2:none], s[true:5], nums[0:3:-1], (1, 2, 3)[1:], range(10)[2:8:2], range(10)[-1]
nums[::0]
nums['a':]
d[1:]
none[1:]
5[1:]
d.a, d['a'], d.missing, d['missing'], d.nested.x[1].y, d['nested']['x'][0], d.nested.x.0, d.nested.x.1.y
d.items, d['items']
d.nested.missing.deeper
d.get('a'), d.get('zz'), d.get('zz', 5), d.get('items')
d.get([1])
d.get()
d.keys() | list, d.values() | list, d.items() | list
d.keys(), d.values(), d.items()
d.items() | length, d.keys() | first, d.values() | last
d.items()[0]
d.copy() == d, nums.copy()
nums.index(1), nums.count(3), (1, 1).count(1), (1, 2).index(2)
nums.index(99)
nums.append(4)
nums.append
nums.pop
d.update({'x': 1})
d.pop('a')
d.setdefault('q', 1)
nums.append is defined, d.update is defined, d.get is defined, d.zip is defined
nums.sort()
nums.reverse()
nums.extend([1])
s.__class__
s.__class__.__mro__
d.__class__ is defined, d._x is defined
missing
missing.x
missing['x']
missing()
missing + 1
1 + missing
-missing
missing == missing, missing == none, missing != none, missing == ''
missing < 1
missing | length, missing | list, missing ~ 'x', missing | string, [missing]
missing[1:]
none.x, none['x'], (5).x, 5['x']
none.x.y
nothing, yes, no, n, f, nums, d, (1,), (), [], {}
[1, 'a', "it's", 'say "hi"', 'both\'"', none, true, 1.0, (1, 2), {'k': 'v'}]
quoted, [quoted], [uni], ['\x00\x1f\x7f\xa0\xad', '\u2028\ufeff', '\U000e0001']
{'a': 1, 2: 'b', none: 3, true: 4, 1.5: [], (1, 2): {}}
{1: 'a', true: 'b', 1.0: 'c'}
{'a': 1, 'a': 2}
{[1]: 2}
{{}: 1}
1.0, 1.50, -0.0, 1e100, 1.0e-10, 3.14159, 1e+2
1 if yes else 2, 1 if no else 2, 1 if no, (1 if no) is undefined
1 if no else 2 if no else 3
'a' if s is string and n > 5 else 'b'
'con' 'cat' "enated"
'\n\t\\\'\"\x41\u00e9\101\z\q', "it's", 'a\
b'
'\é\東'
'\ud800'
'\x4'
'\N{DASH}'
(1, 2)[0], (1), (1,), ()
[1, 2,], {'a': 1,}, (1, 2,)
s is string, n is string, none is string, missing is string
n is number, f is number, yes is number, s is number
n is integer, yes is integer, f is integer, n is float, f is float
yes is boolean, n is boolean, yes is true, no is false, 1 is true, 0 is false, yes is false
none is none, missing is none, 0 is none, nothing is none, nothing is not none
d is mapping, nums is mapping, s is mapping, d.items() is mapping
s is sequence, nums is sequence, d is sequence, n is sequence, none is sequence, missing is sequence, range(2) is sequence, d.keys() is sequence, (1,) is sequence, nums | map('string') is sequence
s is iterable, nums is iterable, d is iterable, n is iterable, none is iterable, missing is iterable, range(2) is iterable, d.keys() is iterable
missing is defined, s is defined, missing is undefined, d.a is defined, d.zz is defined, nums[9] is undefined
4 is even, 4 is odd, 3 is odd, 9 is divisibleby 3, 9 is divisibleby(2), -1 is odd
's' is odd
'abc' is lower, 'ABC' is upper, 'aBc' is lower, '' is lower, '123' is upper, uni is lower
n is eq 7, n is equalto(7), n is ne 3, n is gt 3, n is lt 3, n is ge 7, n is le(7), n is greaterthan 1, n is lessthan 1
n is == 7
1 is in [1, 2], 'a' is in 'abc', 'a' is not in 'b', 1 is in(nums)
d.get is callable, s is callable, range is callable, missing is callable, namespace is callable
'upper' is filter, 'nope' is filter, 'odd' is test, 'nope' is test
none is sameas none, yes is sameas true, 1 is sameas true, d is sameas d, d is sameas {}
('a'|escape) is escaped, 'a' is escaped
n is not defined, not n is defined, n is defined and s is defined
n is number is string
n is nope
s is in
n is divisibleby
n is divisibleby(1, 2)
s | upper, s | lower, s | title, s | capitalize, uni | upper, uni | lower, uni | title, uni | capitalize
'hello world-foo (bar) it\'s x[y {z <w' | title, "they're bill's".title(), 'x-ray'.title()
n | upper, none | lower, true | upper, [1, 'A'] | lower
'  x  ' | trim, 'xxaxx' | trim('x'), '\n\t x' | trim, none | trim, 5 | trim, 'abcba' | trim('ab')
s | replace('l', 'L'), s | replace('l', 'L', 1), s | replace('', '-'), 5 | replace(5, 6), s | replace('zz', 'x'), s | replace('o', none)
s | length, nums | count, d | length, uni | length, range(5) | length
5 | length
none | length
nums | map('string') | length
s | list, d | list, nums | list, range(3) | list, missing | list
none | list
nums | first, [] | first, s | first, d | first, range(3) | first, nums | last, s | last, [] | last, d | last
nums | map('string') | first
nums | map('string') | last
none | first
nums | sort, nums | sort(reverse=true), words | sort, words | sort(case_sensitive=true), words | sort(true), words | sort(reverse=true)
people | sort(attribute='age') | map(attribute='name') | list
people | sort(attribute='city,name') | map(attribute='name') | join(' ')
people | sort(attribute='age', reverse=true) | map(attribute='name') | list
[1, 'a'] | sort
[none, 1] | sort
[[2, 1], [1, 2], [1]] | sort, 'hello' | sort, d | sort
d | dictsort, {'b': 1, 'a': 2} | dictsort(by='value'), {'b': 1, 'A': 2, 'a': 0} | dictsort(true), {'b': 1, 'a': 2} | dictsort(reverse=true), {'b': 1, 'a': 2} | dictsort(false, 'value', true)
{'b': 1} | dictsort(by='x')
nums | dictsort
[1, 1, 2, 'a', 'A', 'b'] | unique | list, ['a', 'A'] | unique(true) | list, people | unique(attribute='age') | map(attribute='name') | list
[[1]] | unique | list
nums | reverse | list, s | reverse, (1, 2) | reverse | list, range(3) | reverse | list, d | reverse | list, uni | reverse
5 | reverse
nums | map('string') | list, nums | map('default', 1) | list, people | map(attribute='name') | join(','), people | map(attribute='tags', default='-') | list
people | map(attribute='tags.0') | list
words | map('upper') | join, words | map('replace', 'a', 'x') | list, nums | map('int') | sum
nums | map('nope') | list
nums | map | list
nums | map(attribute='x', foo=1) | list
missing | map('upper') | list, [] | map('nope') | list
5 | map('upper') | list
nums | select | list, [0, 1, '', 'a', none] | select | list, nums | select('odd') | list, nums | select('gt', 1) | list, nums | select('in', [1, 2]) | list, nums | reject('odd') | list, [0, 1] | reject | list
nums | select('nope') | list
people | selectattr('age', 'equalto', 30) | map(attribute='name') | list, people | selectattr('tags') | list | length, people | rejectattr('tags') | map(attribute='name') | list, people | selectattr('tags', 'defined') | list | length, people | rejectattr('city', 'eq', 'Rome') | list | length
messages | selectattr('role', 'equalto', 'system') | list | length, messages | rejectattr('role', 'in', ['system', 'user']) | map(attribute='content') | first
people | selectattr
'x' if messages | selectattr('role', 'equalto', 'nobody') else 'y'
missing | default('d'), none | default('d'), none | default('d', true), '' | default('d', boolean=true), s | default('d'), missing | d, missing | default(default_value='x'), 0 | d('z', true)
nums | join, nums | join(', '), words | join(1), people | join('; ', attribute='name'), 'abc' | join('-'), d | join(','), [1, none, missing, 'x'] | join('|'), missing | join('x')
5 | join
n | string, f | string, none | string, nums | string, s | string
'42' | int, '42.9' | int, 'x' | int, 'x' | int(5), 3.9 | int, -3.9 | int, none | int, true | int, '0x1f' | int(0, 16), '1f' | int(base=16), ' 7 ' | int, '1_000' | int, '' | int, '1e3' | int, nums | int, '٣' | int, '--1' | int, '+5' | int, '0b11' | int(0, 2), 'z' | int(base=36), '12' | int(base=2)
missing | int
'1.5' | float, 'x' | float, 'x' | float(2.5), 3 | float, 'inf' | float, '-inf' | float, 'nan' | float, '1e5' | float, ' 2 ' | float, none | float, true | float, '1_0.5' | float, '.5' | float, '5.' | float, 'infinity' | float, '1e400' | float, '0x10' | float
missing | float
2.5 | round, 3.5 | round, 2.675 | round(2), 42.55 | round(1, 'floor'), 42.51 | round(1, 'ceil'), 42 | round, 1234 | round(-2), 1250 | round(-2), 1350 | round(-2), -2.5 | round, 0.5 | round, 1e20 | round(2), 2.4 | round(method='ceil'), 1234.5 | round(-2), 5 | round(method='floor'), true | round
2 | round(method='x')
'a' | round
-5 | abs, 5.5 | abs, (-5.5) | abs, true | abs, (-5) | abs
'a' | abs
[1, 2, 3] | sum, [1.5, 2] | sum, people | sum(attribute='age'), [] | sum, [[1], [2]] | sum(start=[]), nums | sum(start=10), [true, true] | sum
['a', 'b'] | sum
[1, 'a'] | sum
nums | min, nums | max, words | min, words | max, words | max(case_sensitive=true), [] | min, people | max(attribute='age') | string, people | min(attribute='name') | string, 'hello' | max, [1.5, 1] | min
[1, 'a'] | min
people | groupby('age') | list | length, people | groupby('city') | map(attribute='grouper') | list, people | groupby('city', case_sensitive=true) | map('first') | list
people | groupby('age') | map(attribute='list') | map('length') | list, people | groupby('zip', default='none') | map(attribute=0) | list
(people | groupby('age'))[0].grouper, (people | groupby('age'))[1].list | length, (people | groupby('age'))[0]
nums | batch(2) | list, range(5) | batch(2, 'x') | list, [] | batch(3) | list, range(7) | slice(3) | list, range(4) | slice(3, 'x') | list
nums | slice(0) | list
d | items | list, missing | items | list
nums | items | list
s | indent, lines | indent, lines | indent(2, true), lines | indent(2, blank=true), lines | indent('> '), lines | indent(first=true), '' | indent(2, true), 'a\n' | indent, 'a\n\n' | indent(2, true, true)
5 | indent
s | truncate(8), s | truncate(5, true), s | truncate(11), 'a b c d e f' | truncate(5, false, '..', 0), s | truncate(8, true, '', 0), s | truncate(255)
s | truncate(2)
s | wordcount, uni | wordcount, 'a-b c_d, e' | wordcount, '' | wordcount
s | center(20) ~ '|', 'ab' | center(5) ~ '|', 'abc' | center(6) ~ '|', 'abc'.center(6, '*'), 'ab'.center(5, '*'), 'a'.center(4, '.')
html | escape, html | e, 5 | e, html | e | e, html | forceescape, (html | e) | forceescape, html | safe
(html | safe) + '<b>', '<b>' + (html | safe), ('<b>' | safe) ~ '<', ('%s' | safe) % '<', ('<' | e) + '<', ('<' | e) * 2
('<a>' | safe).replace('a', '<'), ('<a>' | safe) | replace('a', '<'), ('a,b' | safe).split(','), ('x' | safe) | upper, ('x' | safe).join(['<', '>']), ['<'] | join('x' | safe), ('ab' | safe)[0], [('x' | safe)], ('{}' | safe).format('<')
'%s is %d' | format('x', 3), '%(a)s' | format(a=1), '%s' | format([1]), '%s' | format(missing)
'%s' | format(1, a=2)
'%s and %s' % ('a', 1), '%d%%' % 5, '%s' % none, '%r' % 'x', '%c%c' % ('a', 66), '%s' % (nums,), '%i' % 3.9, '%s' % nums, 'abc' % {}
'%5d|%-5d|%05d|%+d|% d' % (1, 2, 3, 4, 5), '%x %X %o %#x' % (255, 255, 8, 255), '%.2f %e %g %G' % (1.5, 12345.678, 0.0001, 1e-10)
'%5s|%-5s|%.2s' % ('a', 'b', 'cde'), '%(a)s-%(b)d' % {'a': 1, 'b': 2}, '%*d' % (5, 3), '%.3d' % 5
'%-8.3f|' % 3.14159, '%08.3f' % -3.14159, '%+.1e' % 12345.0, '%.0f' % 0.5
'%5%|' % ()
'%s' % ()
'%s %s' % 'a'
'%d' % 'a'
'%d' % none
'abc' % 5
'%s' % (1, 2)
'%(a)s' % 5
'%' % 5
'%z' % 5
'%(x)s' % {'a': 1}
'{} {}'.format(1, 'a'), '{0}{1}{0}'.format('a', 'b'), '{x}-{y}'.format(x=1, y=2), '{:>5}|{:<5}|{:^5}|{:05d}|{:+}|{:,}|{:.2f}|{:x}|{:#x}|{:b}|{:%}|{:e}'.format(1, 2, 3, 4, 5, 1234567, 1.005, 255, 255, 5, 0.25, 12345.678), '{{}}'.format(), '{!r} {!s}'.format('a', 'b'), '{:*^9}'.format('mid'), '{:.3}'.format('abcdef'), '{0[a]} {0[nested][x]}'.format(d), '{:{}}'.format('x', 5), '{:d}'.format(true), '{}'.format(none), '{:_}'.format(1234567), '{:010,}'.format(1234567), '{:.3}'.format(3.14159), '{:g}'.format(1e10), '{:10}|'.format('é'), '{:.1}'.format(100.0), '{:}'.format(2.0), '{:5}|{:5}|'.format(true, 1.5), '{:c}'.format(65), '{:n}'.format(5), '{:.0f}'.format(2.5), '{:G}'.format(1e-10), '{:E}'.format(1.5), '{:06.1f}'.format(-2.25), '{:=+8d}'.format(42), '{:<08d}'.format(42), '{:08}'.format('ab')
'{}'.format()
'{} {0}'.format(1)
'{0} {}'.format(1)
'{'.format()
'}'.format()
'{x}'.format()
'{:d}'.format('a')
'{:d}'.format(1.5)
'{:5}'.format(none)
'{!z}'.format(1)
'{:.2}'.format(5)
'{:=5}'.format('a')
'{0.__class__}'.format(1)
'{a}'.format_map({'a': 1})
s.upper(), s.lower(), s.title(), s.capitalize(), s.swapcase(), s.casefold(), uni.swapcase(), uni.casefold(), uni.title(), 'ﬁn'.upper(), 'ŉ'.upper(), 'ΑΣ ΑΣΑ Σ'.lower(), 'İ'.lower(), 'ǆ'.title(), 'ß'.title()
'  x '.strip(), '  x '.lstrip(), '  x '.rstrip(), 'xyx'.strip('x'), 'abcab'.lstrip('ba'), 'abcab'.rstrip('ba'), '\u3000x\u00a0'.strip(), 'x'.strip(none), '\x1cx\x85'.strip(), '東京東'.strip('東')
'x'.strip(5)
'a,b,c'.split(','), 'a b  c '.split(), 'a,b,c'.split(',', 1), ' a b  c '.split(none, 1), 'a,b,c'.split(sep=',', maxsplit=1), 'abc'.split('x'), ''.split(), ''.split(','), 'a--b'.split('--'), 'a,b,c'.rsplit(',', 1), ' a b c '.rsplit(none, 1), 'a b c'.rsplit(), 'aXbXc'.split('X', 0), ' a b'.split(none, 0), 'aaa'.split('aa'), 'aaa'.rsplit('aa')
'a'.split('')
'a'.split(5)
lines.splitlines(), lines.splitlines(true), 'a\x0bb\x1cc\u2028d\x85e'.splitlines(), ''.splitlines(), '\n'.splitlines(), 'a\r\nb\rc'.splitlines(keepends=true)
'abc'.startswith('a'), 'abc'.startswith(('x', 'a')), 'abc'.endswith('c'), 'abc'.endswith(('x', 'y')), 'abc'.startswith('b', 1), 'abc'.endswith('b', 0, 2), 'abc'.startswith(''), 'abc'.startswith('', 5), 'abc'.startswith(())
'abc'.startswith(5)
'abc'.startswith(['a'])
'abc'.startswith()
'abab'.find('b'), 'abab'.find('b', 2), 'abab'.rfind('b'), 'abc'.find('x'), uni.find('東'), uni.rfind('ß'), 'abab'.index('ab', 1), 'abab'.rindex('ab'), 'abab'.count('ab'), 'aaaa'.count('aa'), 'abc'.count(''), 'abc'.find(''), 'abc'.rfind(''), uni.count('ß'), 'abcabc'.find('c', -2), 'abc'.find('b', 2, 1), 'abc'.find('', 4), 'abcabc'.count('b', 2)
'abc'.index('x')
'a-b-c'.replace('-', '+'), 'a-b-c'.replace('-', '+', 1), 'abc'.replace('', '.'), 'abc'.replace('', '.', 2), 'aaa'.replace('aa', 'b'), uni.replace('ß', 'ss')
'abc'.replace('a')
'abc'.replace('a', 1)
', '.join(words), ''.join(['a', 'b']), '-'.join('abc'), '-'.join(d)
','.join(nums)
','.join(5)
'prefix-x'.removeprefix('prefix-'), 'x.txt'.removesuffix('.txt'), 'abc'.removeprefix('x'), 'abc'.removesuffix(''), 'aa'.removesuffix('a')
'a=b=c'.partition('='), 'a=b=c'.rpartition('='), 'abc'.partition('='), 'abc'.rpartition('=')
'abc'.partition('')
'7'.zfill(3), '-7'.zfill(4), '+7'.zfill(4), 'abc'.zfill(2), 'a'.ljust(3) ~ '|', 'a'.rjust(3), 'a'.ljust(3, '.'), 'é'.rjust(3, '東'), 'a\tb\t'.expandtabs(4), '\ta\n\tb'.expandtabs(2)
'a'.ljust(3, 'ab')
'123'.isdigit(), '١٢'.isdigit(), '²'.isdigit(), '²'.isdecimal(), '½'.isnumeric(), 'abc'.isalpha(), 'é'.isalpha(), 'a1'.isalnum(), ''.isalpha(), ' \t'.isspace(), ''.isspace(), 'Abc'.istitle(), 'Abc Def'.istitle(), 'abc'.islower(), 'ABC1'.isupper(), 'é'.isascii(), ''.isascii(), 'a_1'.isidentifier(), '1a'.isidentifier(), 'a\n'.isprintable(), ''.isprintable(), '東'.isidentifier(), 'A B'.isupper()
'abc'.nope()
'abc'.nope
'abc'.upper(1)
'abc'.encode
range(3), range(1, 3), range(0, 10, 3), range(3) | list, range(5, 0, -2) | list, range(0), range(3)[1], range(3) == range(0, 3), range(0) == range(5, 5), range(3) | sum
range()
range(1.5)
range('a')
range(0, 5, 0)
range(100001) | length
range(100000) | length
range(10 ** 12)
range(1, 2, 3, 4)
dict(a=1, b=2), dict({'a': 1}, b=2), dict([('a', 1), ['b', 2]]), dict(), dict(d) == d, dict(['ab', 'cd'])
dict(5)
dict([1])
dict({}, {})
namespace(a=1).a, namespace({'b': 2}).b, namespace().x, namespace(a=1)['a'], namespace(a=1), [namespace(x='y')]
namespace(_a=1)
namespace(5)
cycler('a', 'b').next(), cycler(1).current
cycler()
joiner()() ~ 'x', joiner('|')()
raise_exception('my words')
raise_exception()
strftime_now('%Y-%m-%d'), strftime_now('%d %b %Y'), strftime_now('%H:%M:%S %A %B %j %%'), strftime_now(''), strftime_now('%-d. %B'), strftime_now('%y/%m é')
strftime_now()
strftime_now(5)
lipsum is defined or true
d | tojson, nums | tojson, s | tojson, none | tojson, true | tojson, f | tojson, big | tojson, uni | tojson, quoted | tojson, mixed | tojson, html | tojson, [] | tojson, {} | tojson, (1, 2) | tojson
d | tojson(indent=2), d | tojson(indent=0), d | tojson(indent='--'), [] | tojson(indent=2), {'a': []} | tojson(indent=2), [[1], {}] | tojson(indent=1), nums | tojson(indent=none), nums | tojson(indent=-1)
d | tojson(sort_keys=true), {'b': 1, 'a': {'d': 1, 'c': 2}} | tojson(sort_keys=true, indent=2), {2: 1, 1: 2} | tojson(sort_keys=true)
uni | tojson(ensure_ascii=true), quoted | tojson(ensure_ascii=true), uni | tojson(true), d | tojson(false, 2)
d | tojson(separators=(',', ':')), d | tojson(separators=[',', ': ']), d | tojson(indent=2, separators=(', ', ' : ')), nums | tojson(separators=(',', ':'))
{1: 'a', none: 'b', true: 'c', 1.5: 'd'} | tojson, {'x': 1.0, 'y': 1e100, 'z': 1e-7} | tojson, [1e16, 0.1, -0.0, 100] | tojson, ('inf' | float) | tojson, ('nan' | float) | tojson
{(1, 2): 3} | tojson
missing | tojson
[missing] | tojson
range(3) | tojson
d.items() | tojson
nums | map('string') | tojson
namespace(a=1) | tojson
{1: 1, 'a': 2} | tojson(sort_keys=true)
d | tojson(separators=5)
d | tojson(nope=1)
('x' | safe) | tojson, ('<' | e) | tojson
s | nope
s | upper(1)
s | replace
s | default(1, 2, 3)
d | attr('get') is callable, d | attr('a') is undefined, s | attr('upper') is defined
'a b&c/d?é' | urlencode, {'a': 1, 'b c': 'd&'} | urlencode, [('x', 1)] | urlencode
(1, 2, 3) | list, (nums | sort)[0], nums | sort | first, -nums | length
-1 | abs, -1 ** 2, (-1) | abs, 2 * -3, 2 - -3, 1 -1, 1-1
n|string + 'x', n|string|length, (n + 1)|string, 'a' ~ n|string, 1 + '2'|int
s.split(', ')[1].upper()[::-1], s.split(', ')|last|lower
[1, 2, 3] | select('in', [2]) | list, 'abc' | map('upper') | list, {'a': 1} | map('upper') | list
(nums | map('string') | list)[0] ~ '', nums | map('string') | join | int
nums == [3, 1, 2], nums != nums, d == d, d != {}
""")

ERRORS = [
    "{{ 1 + }}", "{{ }}", "{{ 'abc }}", "{{ (1 }}", "{{ [1, 2 }}", "{{ {1} }}", "{{ a b }}", "{{ 1..2 }}", "{{ a. }}", "{{ @ }}",
    "{{ a ? b }}", "{{ $x }}", "{{ 5x }}", "{{ a = 1 }}", "{{ f(a=1, 2) }}", "{{ f(a=1, a=2) }}", "{{ f(**a, b) }}", "{{ f(*a, *b) }}",
    "{{ not }}", "{{ a is }}", "{{ a | }}", "{{ a[ }}", "{{ ] }}", "{{ (] }}", "{% if %}x{% endif %}", "{% if a %}", "{% endif %}",
    "{% for x in %}{% endfor %}", "{% for in y %}{% endfor %}", "{% for x y in z %}{% endfor %}", "{% for x in y %}", "{% else %}",
    "{% set %}", "{% set 1 = 2 %}", "{% set x %}", "{% set none = 1 %}", "{% set x.y.z = 1 %}", "{% set x[0] = 1 %}", "{% nope %}",
    "{% macro %}{% endmacro %}", "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m(a, a) %}{% endmacro %}", "{% break %}", "{% continue %}",
    "{% for x in [1] %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{% for loop in [1] %}{% endfor %}",
    "{% for x in [1] %}{% set loop = 1 %}{% endfor %}", "{# open", "{% raw %}x", "{% if a %}{% else %}{% else %}{% endif %}", "{%", "{{",
    "{% call x %}{% endcall %}", "{% set ns.x = 1 %}", "{% set s.x = 1 %}", "{% do x.append(1) %}", "{% if a %}{% endfor %}", "{% filter nope %}x{% endfilter %}",
    "{% set a, b = 1 %}", "{% set a, b = [1] %}", "{% set a, b = [1, 2, 3] %}", "{% for a, b in [1] %}{% endfor %}", "{% for a, b in ['xyz'] %}{% endfor %}",
    "{% for x in 5 %}{% endfor %}", "{% for x in none %}{% endfor %}", "{% macro m(x) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(x) %}{% endmacro %}{{ m(y=2) }}",
    "{% macro m(x) %}{{ x.y }}{% endmacro %}{{ m() }}", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}",
    "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{{ n.foo.bar }}", "{{ s.foo() }}", "{{ n() }}", "{{ s() }}", "{{ dict(**5) }}", "{{ range(*5) }}",
    "{{ raise_exception('a' ~ 1) }}", "{{ 'x' * 10 ** 12 }}", "{% if a %}{% elif %}{% endif %}", "{{ a[1:2, 3] }}", "{{ 'a' 5 }}", "{% with x %}{% endwith %}",
]

STATEMENTS = [
    "{% set x = 1 %}{{ x }}", "{% set x, y = 1, 2 %}{{ x }}{{ y }}", "{% set x = 1, 2 %}{{ x }}", "{% set (a, b), c = (1, 2), 3 %}{{ a }}{{ b }}{{ c }}", "{% set a, b = 'xy' %}{{ a }}{{ b }}",
    "{% set x %}a{{ n }}b{% endset %}[{{ x }}]", "{% set x | upper %}a{{ n }}b{% endset %}[{{ x }}]", "{% set x | upper | replace('A', 'z') %}a{% endset %}{{ x }}", "{% set x %}{% endset %}[{{ x }}]{{ x is string }}",
    "{% set x = 1 %}{% set x = x + 1 %}{{ x }}", "{% set x %}{% set y = 2 %}{{ y }}{% endset %}{{ x }}{{ y }}", "{% set ns = namespace(a=1) %}{% set ns.a = 2 %}{% set ns.b = 3 %}{{ ns.a }}{{ ns.b }}{{ ns }}",
    "{% set ns = namespace() %}{% for i in nums %}{% set ns.x = i %}{% endfor %}{{ ns.x }}", "{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns.a }}{{ ns.b }}", "{% set ns = namespace() %}{% set ns.t %}text{% endset %}{{ ns.t }}",
    "{% set x = 0 %}{% for i in nums %}{% set x = i %}{% endfor %}{{ x }}", "{% set x = 0 %}{% if true %}{% set x = 1 %}{% endif %}{{ x }}", "{% for i in nums %}{% set y = i %}{{ y }}{% endfor %}{{ y }}",
    "{% set x = 5 %}{% for i in nums %}{{ x }}{% set x = i %}{{ x }}{% endfor %}{{ x }}", "{% if false %}{% set s = 1 %}{% endif %}{{ s }}", "{% if true %}{% set s = 1 %}{% endif %}{{ s }}", "{{ q }}{% set q = 1 %}{{ q }}",
    "{% if no %}{% set q = 1 %}{% else %}{% set q = 2 %}{% endif %}{{ q }}", "{% if no %}{% set q = 1 %}{% elif yes %}{% set q = 2 %}{% else %}{% set q = 3 %}{% endif %}{{ q }}", "{% if no %}{% set s = 1 %}{% elif no %}{% set s = 2 %}{% endif %}{{ s }}",
    "{% for i in nums %}{% if i == 1 %}{% set s = i %}{% endif %}{{ s }};{% endfor %}{{ s }}", "{% set s = s ~ '!' %}{{ s }}", "{% for i in nums %}{% set s = s ~ i %}{{ s }};{% endfor %}{{ s }}",
    "{% for x in nums %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}", "{% for x in nums %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }};{% endfor %}",
    "{% for x in nums %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}", "{% for x in nums %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}", "{% for x in nums %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }}{% endfor %}", "{% for x in nums %}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}", "{% for x in nums %}{{ loop.nope is defined }}{% endfor %}", "{% for x in nums %}{{ loop.changed() }}{% endfor %}",
    "{% for x in nums | map('string') %}{{ loop.last }}{{ loop.length }}{{ x }}{% endfor %}", "{% for x in nums if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }}{{ loop.nextitem }};{% endfor %}", "{% for x in nums if x > 9 %}a{% else %}none{% endfor %}",
    "{% for x in [] %}a{% else %}b{% endfor %}", "{% for x in [1] %}a{% else %}b{% endfor %}", "{% for x in [1, 2] %}{% continue %}{% else %}b{% endfor %}", "{% for x in [1, 2] %}{{ x }}{% break %}{% else %}b{% endfor %}", "{% for x in [1, 2] %}{{ x }}{% if x == 2 %}{% break %}{% endif %}{% else %}b{% endfor %}",
    "{% for x in range(10) %}{% if x is odd %}{% continue %}{% endif %}{% if x > 6 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in [1, 2] %}{% for y in [3, 4] %}{% if y == 4 %}{% break %}{% endif %}{{ x }}{{ y }};{% endfor %}{% endfor %}",
    "{% for x in [1, 2] %}{% for y in [] %}{% else %}{% break %}{% endfor %}{{ x }}{% endfor %}z", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}", "{% for c in 'añ東' %}{{ c }}-{% endfor %}", "{% for a, b in [[1, 2], (3, 4), 'xy'] %}{{ a }}{{ b }}{% endfor %}",
    "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for x in missing %}a{% else %}b{% endfor %}", "{% for x in 1, 2 %}{{ x }}{% endfor %}", "{% for x in nums %}{{ x }}{% endfor %}{{ x }}", "{% for x in nums %}{% for x in 'ab' %}{{ x }}{% endfor %}{{ x }}{% endfor %}",
    "{% for x in nums %}{% for y in 'ab' %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}", "{% for x in nums %}{% set outer = loop %}{% for y in 'ab' %}{{ outer.index }}{{ loop.index }};{% endfor %}{% endfor %}", "{% for n in nums %}{{ n }}{% endfor %}{{ n }}", "{% for i in nums if i != n %}{{ i }}{% endfor %}",
    "{% for x in nums if loop %}a{% else %}b{% endfor %}", "{% for x in [1, 2, 3] if x is odd %}{{ loop.revindex }}{% endfor %}", "{% for x in nums | reverse %}{{ x }}{{ loop.length }}{% endfor %}", "{% for x in d.items() %}{{ loop.length }}{{ x[0] }}{% endfor %}", "{% for x in nums %}{{ loop | length }}{% endfor %}",
    "{% for x in nums %}{% if loop %}t{% endif %}{% endfor %}", "{% for m in messages %}{% if m.role == 'user' and loop.nextitem and loop.nextitem.role == 'assistant' %}{{ loop.nextitem.content }}{% endif %}{% endfor %}",
    "{% set g = nums | map('string') %}{{ g | list }}{{ g | list }}", "{% set g = nums | select('odd') %}{% for x in g %}{{ x }}{% endfor %}{% for x in g %}{{ x }}{% endfor %}", "{% set it = d.items() %}{{ it | list | length }}{{ it | list | length }}", "{% set r = nums | reverse %}{{ r | first }}{{ r | list }}",
    "{% if missing %}a{% elif none %}b{% elif 0 %}c{% elif '' %}d{% elif [] %}e{% elif {} %}f{% elif 0.0 %}g{% elif () %}h{% elif range(0) %}i{% else %}j{% endif %}", "{% if nums | select('gt', 9) %}generators are true{% endif %}", "{% if d.get %}methods too{% endif %}", "{% if namespace() %}and these{% endif %}", "{% if 'a', %}tuple{% endif %}",
    "{% if n == 7 and s is string or missing %}y{% endif %}", "{% if not n == 8 %}y{% endif %}", "{% if n: %}colon{% else: %}x{% endif %}",
    "{% macro m(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, 3) }}|{{ m(1, c='y') }}|{{ m(b=5, a=4) }}|{{ m() }}", "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 2) }}", "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}", "{% macro m(a) %}{{ a }}{{ varargs }}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}body {{ n }}{% endcall %}", "{% macro m(x) %}[{{ caller(x, 2) }}]{% endmacro %}{% call(a, b) m(1) %}{{ a }}-{{ b }}{% endcall %}", "{% macro m() %}{% if caller %}{{ caller() }}{% else %}none{% endif %}{% endmacro %}{{ m() }}{% call m() %}x{% endcall %}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}",
    "{% macro m() %}{{ late }}{% endmacro %}{% set late = 'set later' %}{{ m() }}", "{% macro m() %}{% set s = 'inner' %}{{ s }}{% endmacro %}{{ m() }}{{ s }}", "{% macro m() %}{{ s }}{% set s = 'inner' %}{{ s }}{% endmacro %}{{ m() }}", "{% macro m() %}{% if s is defined %}{{ s }}{% set s = 2 %}{% endif %}{{ s }}{% endmacro %}{{ m() }}",
    "{% macro fact(x) %}{% if x <= 1 %}1{% else %}{{ x * fact(x - 1) | int }}{% endif %}{% endmacro %}{{ fact(5) }}", "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}b{% endmacro %}{{ a() }}", "{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(1) ~ m(2) }}{{ m(1) | length }}{{ m(1) is string }}", "{% macro m(x) %}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m is callable }}",
    "{% macro m() %}x{% endmacro %}{{ m }}", "{% for i in nums %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}", "{% macro outer() %}{% macro inner() %}in{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }}", "{% set x = 1 %}{% macro m() %}{{ x }}{% endmacro %}{% set x = 2 %}{{ m() }}", "{% macro m(x) %}{{ x is defined }}{{ x is none }}{% endmacro %}{{ m() }}{{ m(none) }}{{ m(missing) }}",
    "{% macro m(x=missing) %}{{ x is defined }}{% endmacro %}{{ m() }}", "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(**{'a': 1, 'b': 2}) }}{{ m(1, *[2]) }}", "{% macro m(n) %}{{ n }}{% endmacro %}{{ m(1) }}{{ n }}", "{% macro m() %}{% for x in nums %}{{ loop.index }}{{ x }}{% endfor %}{% endmacro %}{{ m() }}", "{% macro m() -%}  x  {%- endmacro %}[{{ m() }}]",
    "{% macro m(caller=none) %}{% if caller %}{{ caller() }}{% else %}n{% endif %}{% endmacro %}{{ m() }}{% call m() %}c{% endcall %}", "{% for i in nums %}{% if loop.first %}{% macro f() %}{{ i }}{% endmacro %}{% endif %}{{ f() }}{% endfor %}", "{% set ns = namespace(f=none) %}{% macro m() %}hi{% endmacro %}{% set ns.f = m %}{{ ns.f() }}",
    "{% filter upper %}abc{{ n }}{% endfilter %}", "{% filter replace('a', 'b') | upper %}aaa{% endfilter %}", "{% filter trim %}  x {% set q = 1 %}{{ q }} {% endfilter %}{{ q }}", "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with n = 1 %}{{ n }}{% endwith %}{{ n }}", "{% with a = 1 %}{% with b = a %}{{ b }}{% endwith %}{% endwith %}", "{% with a = n, n = 2 %}{{ a }}{{ n }}{% endwith %}", "{% with %}{% set z = 3 %}{{ z }}{% endwith %}{{ z }}",
    "{% generation %}text {{ n }}{% endgeneration %}", "{% generation %}{% set q = 1 %}{{ q }}{% endgeneration %}{{ q }}", "{% for m in messages %}{% generation %}{{ m.content }}{{ loop.index }}{% endgeneration %}{% endfor %}", "{%- generation -%}  x  {%- endgeneration -%}", "{% print 1, 'a', n %}", "{% print %}",
    "{% raw %}{{ not }} {% this %} {# nor #}{% endraw %}", "a {% raw -%}  x  {%- endraw %} b", "  {% raw %}\n x\n  {% endraw %}\n y", "{%- raw %} x {% endraw -%} y", "{#- c -#} x {# c #} y", "a\n{# c #}\nb", "a\n  {# c #}  \nb", "a {#- c #} b {# d -#} c", "{# {{ not }} #}x",
    "a\n{% if yes %}\nb\n{% endif %}\nc\n", "a\n  {% if yes %}\n  b\n  {% endif %}\nc", "a\n  {%+ if yes %}\n  b\n  {% endif +%}\nc", "a  {% if yes %}  b  {% endif %}  c", "a\n\n  {%- if yes -%}  \n  b\n {%- endif -%}\n c", "  {{ n }}  \n  {{ n }}\n", "a\n  {{- n -}}  \n b", "{% if yes %}\r\na\r\n{% endif %}\rb\r\n", "\n\na\n\n", "a\n", "a\n\n", "",
    "{% set x = 1 %}\n{% set y = 2 %}\n{{ x }}\n", "\t{% if yes %}x{% endif %}", " {% if yes %}x{% endif %} y", "x {% if yes %}y{% endif %}\n\n  z", "{% for i in nums %}\n{{ i }}\n{% endfor %}", "{%- for i in nums -%}\n{{ i }}\n{%- endfor -%}\n", "{%- for i in nums %}\n  {{- i }},\n{%- endfor %}", "{% if yes -%}\n\n  a\n{%- else -%} b {%- endif %}  c", "{{ '  x\n' }}\n{{ 1 }}", "{{ '\n' -}}\n  x", "a{{ '\n' }}{% if yes %}b{% endif %}", "{{ n }}\n{% if yes %}b{% endif %}", "{{ n }}  {% if yes %}b{% endif %}", "\u00a0{% if yes %}x{% endif %}\u3000{%- if yes %}y{% endif %}",
    "{{ '{{' }}{{ '}}' }}{{ '%}' }}", "{{ {'a': {'b': 1}} }}", "{{ {'a': {'b': {}}}['a'] }}", "{{'x'}}{{-'y'-}} z", "{{ n -}} x", "{{- n }}x", "{{+ n }}", "{{-1}}", "{ {% if yes %}{ {% endif %}} }", "{ { } } % # {x} {", "}} %} #}", "{{ '#}' }}{# '#}' #}", "{%if yes%}x{%endif%}", "{%\n if\n yes\n %}x{%\nendif\n%}", "{{ s\n|\nupper\n}}", "{% set x = [\n1,\n2\n] %}{{ x }}", "é{{ '東' }}🎉", "{{ über }}{% set über = 'ü' %}{{ über }}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}", "{% set j = joiner(', ') %}{% for x in nums %}{{ j() }}{{ x }}{% endfor %}", "{% set j = joiner() %}{{ j() }}a{{ j() }}b", "{{ self is defined or true }}", "{% set dict = 5 %}{{ dict }}", "{% set range = 'x' %}{{ range }}", "{{ loop is defined }}", "{{ caller is defined }}",
    "{% set messages = messages[1:] %}{% for m in messages %}{{ m.role }}{% endfor %}", "{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] %}{% set rest = messages[1:] %}{% else %}{% set rest = messages %}{% endif %}{{ system }}{{ rest | length }}", "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] | trim + '<|end|>' }}{% endfor %}", "{% set ns = namespace(found=false) %}{% for m in messages[::-1] %}{% if not ns.found and m.role == 'user' %}{% set ns.found = true %}{{ messages | length - loop.index }}{% endif %}{% endfor %}",
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ m.role }};{% endif %}{% endfor %}", "{{ messages[-1]['content'].split('l')[-1].lstrip('\n') }}", "{% if messages[0].content is string %}{{ messages[0].content }}{% else %}{{ messages[0].content[0].text }}{% endif %}", "{% set x = messages | map(attribute='role') | list %}{{ x }}{{ 'user' in x }}", "{{ (messages | last).role }}{{ messages | map(attribute='content') | join('\n\n') }}", "{% set tool = {'type': 'function', 'function': {'name': 'f', 'parameters': d}} %}{{ tool | tojson(indent=4) }}", "{{ 'x' if tools is defined and tools else 'y' }}{{ tools | default([]) | length }}",
    "{% set text = '' %}{% for m in messages %}{% set text = text + m.content %}{% endfor %}[{{ text }}]", "{% for i in range(3) %}{% for j in range(i) %}{{ i }}{{ j }},{% endfor %}{% endfor %}", "{% for x in [1,2,3] %}{% set ns = namespace(v=x) %}{% set ns.v = ns.v * 2 %}{{ ns.v }}{% endfor %}", "{% set a = b = 1 %}", "{% set a = (1 if yes else 2) %}{{ a }}", "{% set a = 1 if no %}{{ a is defined }}", "{% for x in (nums if yes else []) %}{{ x }}{% endfor %}",
    "{% set x %}{% for i in nums %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% endfor %}{% endset %}{{ x }}", "{% for i in nums %}{% set x %}{{ i }}{% if i == 1 %}{% break %}{% endif %}{% endset %}{{ x }}{% endfor %}", "{% for i in nums %}{% filter upper %}a{{ i }}{% if i == 1 %}{% continue %}{% endif %}{% endfilter %}{% endfor %}", "{% for i in nums %}{% with q = i %}{% if q == 1 %}{% continue %}{% endif %}{{ q }}{% endwith %}{% endfor %}",
]

# Where random templates found a difference.
FOUND = [
    "{{ missing | truncate(5) }}{{ nums | truncate(5) }}", "{{ messages | truncate(1, end='') }}", "{{ missing | reverse | list }}", "{{ missing | last }}", "{{ 'x' % missing }}", "{{ '%s' % missing }}", "{{ '%(a)s' % missing }}",
    "{{ 'a b  '.split(none, 1) }}", "{{ '{:<08d}|{:^06}|{:>04}'.format(42, 1, 2) }}", "{{ ({'a': 1})[1:3] | sum }}", "{{ ('1' | float)[-2:] | join(', ') }}", "{{ [true[1:], 1] }}", "{{ n[1:] }}", "{{ '%-%' % () }}", "{{ '%5%' % 1 }}", "{{ '%%' % () }}",
]

SNIPPETS = EXPRESSIONS + ERRORS + STATEMENTS + FOUND
