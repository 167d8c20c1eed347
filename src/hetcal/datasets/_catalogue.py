"""The catalogue: every data set that has a name, the file that holds it, and where to get it.

Several names may share one file (`mnist-4v9` and `mnist10` are both cut from `mnist.npz`).
Checksums are of the canonical content (`hetcal.datasets._canonical.checksum`), not of the file, so
they hold for a folder, a cache and a download alike.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FILES", "NAMES", "FileSpec", "NameSpec", "list_datasets"]

_FASHION = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
_CIFAR10 = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)


@dataclass(frozen=True)
class FileSpec:
    """One file of the data folder.

    Attributes
    ----------
    filename : str
        Its name in the data folder and in the cache.
    kind : {"images", "network", "table"}
        Which reader understands it.
    sha256 : str
        Checksum of the canonical content; empty where the file cannot be downloaded.
    sources : tuple of str
        Where a download may come from, in order of preference: ``"openml:<data_id>"`` or
        ``"uci:<path in the archive>"``.
    description : str
        Origin, licence, and what to know before using it.
    """

    filename: str
    kind: str
    sha256: str = ""
    sources: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True)
class NameSpec:
    """One name: the file it reads, and what it takes from it."""

    file: str
    digits: tuple[int, int] | None = None
    class_names: tuple[str, ...] = ()
    target: str = ""
    categorical: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


_NETWORK = (
    "Output of a network on the {images} test set in the original order: latents (global average "
    "pool), logits, labels. {weights}"
)
_RESNET = "Pretrained weights of chenyaofo/pytorch-cifar-models (BSD-3-Clause)."
_REPVGG = (
    "The paper's architecture, but not its weights: trained anew on the train set, and so less "
    "accurate by 0.6 (CIFAR-10) and 1.2 (CIFAR-100) points than the published weights."
)


def _network_files() -> dict[str, FileSpec]:
    files = {}
    for images in ("cifar10", "cifar100"):
        for net, weights in (("resnet20", _RESNET), ("resnet56", _RESNET), ("repvgg_a2", _REPVGG)):
            key = f"{images}-{net}"
            text = _NETWORK.format(images=images.upper().replace("R", "R-"), weights=weights)
            files[key] = FileSpec(f"{key}.npz", "network", description=text)
        key = f"{images}-wideresnet-16-4"
        files[key] = FileSpec(
            f"{key}-probs.npz",
            "network",
            description="Softmax output only, no latents (X is None); logits are log "
            "probabilities. From the example records of the netcal framework (Apache 2.0).",
        )
    return files


FILES: dict[str, FileSpec] = {
    "mnist": FileSpec(
        "mnist.npz",
        "images",
        sha256="96e7a305950b896bfc1dc9ae9d85fbfc49250af6d562fe9f01eb234cfcf74726",
        sources=("openml:554",),
        description="MNIST handwritten digits, train then test (LeCun et al. 1998).",
    ),
    "fashion-mnist": FileSpec(
        "fashion-mnist.npz",
        "images",
        sha256="dee339613e8572c6acf55e46456442cf4cc18bdfaab4297d3820a175967e87a1",
        sources=("openml:40996",),
        description="Fashion-MNIST, train then test (Xiao et al. 2017, MIT licence).",
    ),
    "letter": FileSpec(
        "letter.npz",
        "images",
        sha256="1f0b3e35444f3d85ea13b2bf01000fa96913e7378dab864fae09094e6e9903b7",
        sources=("uci:59/letter+recognition.zip", "openml:6"),
        description="Letter recognition (Frey and Slate 1991; UCI, doi:10.24432/C5ZP40, "
        "CC BY 4.0).",
    ),
    "adult": FileSpec(
        "adult.csv.gz",
        "table",
        sha256="a67b06bb0674efb16125fe85ffce84aaefdfb364f132bd6dc1d2bc263f783250",
        sources=("uci:2/adult.zip", "openml:1590"),
        description="Census income: is it over 50K? (Becker and Kohavi 1996; UCI, "
        "doi:10.24432/C5XW20, CC BY 4.0). `fnlwgt` is a survey weight, not a property of the "
        "person, and `split` tells the original train rows from the test rows: both are in "
        "`frame`, neither is in X.",
    ),
    "bank-marketing": FileSpec(
        "bank-marketing.csv.gz",
        "table",
        sha256="0b2c279758dcd83c889b7f9a6b38465d2f84aa8c59c6a0fa72b8a5453e85d89b",
        sources=("uci:222/bank+marketing.zip",),
        description="Does the customer take the deposit? (Moro, Rita and Cortez 2014, "
        "`bank-additional-full`; UCI, doi:10.24432/C5K306, CC BY 4.0). `duration` is known only "
        "after the call, so it is in `frame` but not in X. Rows are in time order: a random "
        "split lets a model see the future.",
    ),
    "credit-default": FileSpec(
        "credit-default.csv.gz",
        "table",
        sha256="46e161a37cbe0e3a09f6c636da68732c6ee9fc3befc6010cceee32206ae54788",
        sources=("openml:42477",),
        description="Does the card holder default next month? (Yeh and Lien 2009; UCI, "
        "doi:10.24432/C55S3H, CC BY 4.0). The row id was dropped. SEX, EDUCATION and MARRIAGE "
        "are codes and come as categories.",
    ),
    **_network_files(),
}

_ADULT_CATEGORIES = (
    "workclass",
    "education",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native_country",
)
_BANK_CATEGORIES = (
    "job",
    "marital",
    "education",
    "default",
    "housing",
    "loan",
    "contact",
    "month",
    "day_of_week",
    "poutcome",
)

NAMES: dict[str, NameSpec] = {
    "mnist10": NameSpec("mnist"),
    "mnist-1v7": NameSpec("mnist", digits=(1, 7)),
    "mnist-4v9": NameSpec("mnist", digits=(4, 9)),
    "mnist-3v8": NameSpec("mnist", digits=(3, 8)),
    "mnist-3v5": NameSpec("mnist", digits=(3, 5)),
    "fashion-mnist": NameSpec("fashion-mnist", class_names=_FASHION),
    "letter": NameSpec("letter"),
    "adult": NameSpec(
        "adult",
        target="income",
        categorical=_ADULT_CATEGORIES,
        left_out=("fnlwgt", "split"),
    ),
    "bank-marketing": NameSpec(
        "bank-marketing", target="y", categorical=_BANK_CATEGORIES, left_out=("duration",)
    ),
    "credit-default": NameSpec(
        "credit-default", target="default", categorical=("SEX", "EDUCATION", "MARRIAGE")
    ),
    **{
        key: NameSpec(key, class_names=_CIFAR10 if key.startswith("cifar10-") else ())
        for key in _network_files()
    },
}


def list_datasets() -> list[str]:
    """Names that `load_dataset` knows.

    Examples
    --------
    >>> from hetcal.datasets import list_datasets
    >>> list_datasets()[:4]
    ['moons', 'mnist10', 'mnist-1v7', 'mnist-4v9']
    """
    return ["moons", *NAMES]
