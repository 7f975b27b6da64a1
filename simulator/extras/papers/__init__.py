"""What only the four papers need: data sets, networks, and inversion of gradients.

For who repeats VAFL, FedBCD, MAPA or A(DP)2SGD (docs/extras/papers.md).

- `data`: their sets, which read files of the data folder.
- `cifar_net`: nine networks for CIFAR-10; `view_cnn`: a party's part of an image.
- `attacks`: images recovered from messages; `commands` has `stalesim attack`.
"""

from ...config.attached import Extra

EXTRA = Extra(
    parts={
        "data": (
            f"{__name__}.data.usps:Usps",
            f"{__name__}.data.parkinson:Parkinson",
            f"{__name__}.data.mimic.part:Mimic",
            f"{__name__}.data.modelnet40:ModelNet40",
            f"{__name__}.data.nus_wide:NusWide",
            f"{__name__}.data.credit:Credit",
            f"{__name__}.data.speech.part:Speech",
            f"{__name__}.data.spoken_digits.part:SpokenDigits",
            f"{__name__}.data.mfeat:Mfeat",
            f"{__name__}.data.physionet2012.part:PhysioNet2012",
        ),
        "models": (
            f"{__name__}.cifar_net.part:CifarNet",
            f"{__name__}.view_cnn.part:ViewCnn",
        ),
    },
    commands=f"{__name__}.commands",
)
