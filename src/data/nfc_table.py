#!/usr/bin/env python3
"""Writes nfc_table.inl from Python's Unicode database: nfc_table.py > nfc_table.inl"""
import unicodedata

ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def decomposition(code):
    fields = unicodedata.decomposition(chr(code)).split()
    if not fields or fields[0].startswith("<"):
        return None
    return tuple(int(f, 16) for f in fields) if len(fields) == 2 else (int(fields[0], 16), 0)


def runs(values):
    """[(first code, [value of each following code])] of a dict by code."""
    out = []
    for code in sorted(values):
        if out and code == out[-1][0] + len(out[-1][1]):
            out[-1][1].append(values[code])
        else:
            out.append((code, [values[code]]))
    return out


def table(name, comment, numbers):
    print(f"// {comment}\nconstexpr uint32_t {name}[] = {{")
    line = "   "
    for number in numbers:
        text = f" {number}," if number < 10 else f" 0x{number:X},"
        if len(line) + len(text) > 100:
            print(line)
            line = "   "
        line += text
    print(f"{line}\n}};")


pairs = {c: decomposition(c) for c in ALL if decomposition(c)}
classes = {c: unicodedata.combining(chr(c)) for c in ALL if unicodedata.combining(chr(c))}
excluded = [c for c, (a, b) in pairs.items()
            if b and c not in classes and a not in classes
            and unicodedata.normalize("NFC", chr(c)) != chr(c)]
print(f"// Unicode {unicodedata.unidata_version}, by nfc_table.py; not written by hand.")
table("kDecompositions", "First character, count, and for each the one or two (else 0) it is made of.",
      [n for first, values in runs(pairs) for n in (first, len(values), *sum(values, ()))])
table("kClasses", "First character, count, and for each its canonical combining class.",
      [n for first, values in runs(classes) for n in (first, len(values), *values)])
table("kExcluded", "Pairs that are taken apart but not put together again.", excluded)
