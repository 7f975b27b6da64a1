"""Files of all papers' sets: which are read, missing, or damaged."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from stalesim.simulator.extras.papers.data.credit import Credit
from stalesim.simulator.extras.papers.data.mfeat import Mfeat
from stalesim.simulator.extras.papers.data.mimic.part import Mimic
from stalesim.simulator.extras.papers.data.nus_wide import NusWide
from stalesim.simulator.extras.papers.data.parkinson import Parkinson
from stalesim.simulator.extras.papers.data.physionet2012.part import PhysioNet2012
from stalesim.simulator.extras.papers.data.speech.part import Speech
from stalesim.simulator.extras.papers.data.spoken_digits.part import SpokenDigits
from stalesim.simulator.extras.papers.data.usps import Usps
from stalesim.simulator.parts.errors import DataError
from tests.extras.papers import test_credit as credit
from tests.extras.papers import test_mfeat as mfeat
from tests.extras.papers import test_mimic as mimic
from tests.extras.papers import test_nus_wide as nus_wide
from tests.extras.papers import test_parkinson as parkinson
from tests.extras.papers import test_physionet2012 as physionet2012
from tests.extras.papers import test_speech as speech
from tests.extras.papers import test_spoken_digits as spoken_digits
from tests.extras.papers import test_usps as usps

IHM = "in-hospital-mortality/"


class Made(NamedTuple):
    """A set, and what writes its files into a data folder."""

    config: Any
    write: Callable[[Path], Any]


SETS = {
    "credit": Made(
        Credit(), lambda root: credit.write_csv(root / "UCI_Credit_Card.csv")
    ),
    "mfeat": Made(Mfeat(), lambda root: mfeat.write(root / "mfeat")),
    "mimic": Made(Mimic(), lambda root: mimic.write(root / "in-hospital-mortality")),
    "nus_wide": Made(NusWide(), nus_wide.write),
    "parkinson": Made(
        Parkinson(), lambda root: parkinson.write(root / "pd_speech_features.csv")
    ),
    "physionet2012": Made(PhysioNet2012(), physionet2012.write_all),
    "speech": Made(
        Speech(frames=3), lambda root: speech.save(root / "speech.npz", speech.arrays())
    ),
    "spoken_digits": Made(SpokenDigits(frames=4), spoken_digits.write),
    "usps": Made(Usps(), usps.write),
    "usps, unpacked": Made(Usps(), lambda root: usps.write(root, packed=False)),
}


@pytest.mark.parametrize("name", SETS)
def test_a_set_says_which_files_it_reads(
    root: Path, name: str, check_files: Any
) -> None:
    config, write = SETS[name]
    write(root)
    check_files(config)


@pytest.mark.parametrize(
    ("name", "removed", "says"),
    [
        ("credit", None, r"no UCI_Credit_Card\.csv; download the zip"),
        ("mfeat", "mfeat/mfeat-pix", "no mfeat-pix; download the zip of archive"),
        (
            "mimic",
            None,
            f"no {IHM}train/listfile.csv, {IHM}test/listfile.csv; the data",
        ),
        ("mimic", None, "the data are credentialed .vafl/physionet_lstm asks the"),
        (
            "mimic",
            f"{IHM}test/listfile.csv",
            f"no {IHM}test/listfile.csv;",
        ),
        (
            "nus_wide",
            None,
            "no Train_Normalized_CH.dat, Train_Normalized_CM55.dat and 14 more; down",
        ),
        ("nus_wide", None, "; then put it into {root}/nus_wide$"),
        ("nus_wide", "NUS_WID_Tags/Test_Tags1k.dat", r"no Test_Tags1k\.dat; download"),
        ("parkinson", None, r"no pd_speech_features\.csv; download the"),
        (
            "physionet2012",
            "physionet2012/Outcomes-b.txt",
            r"no Outcomes-b\.txt; stalesim data get physionet2012$",
        ),
        ("speech", None, r"no speech\.npz; a licence is sold at"),
        ("spoken_digits", None, "no recordings.zip; download the zip of version 1.0.1"),
        ("spoken_digits", None, "github.com/Jakobovski.* {root}/spoken_digits"),
        ("usps", "usps.t.bz2", r"no usps\.t\.bz2; stalesim data get usps$"),
    ],
)
def test_missing_files_are_named(
    root: Path, name: str, removed: str | None, says: str
) -> None:
    (root / "other.csv").write_text("ID,LIMIT_BAL\n1,2\n")
    if removed is not None:
        SETS[name].write(root)
        (root / removed).unlink()
    start = rf"^{name} must be in the data folder, {root} \(chosen by STALESIM_DATA\), "
    says = says.replace("{root}", str(root))
    with pytest.raises(DataError, match=f"{start}got (no )?.*{says}") as error:
        SETS[name].config.make()
    assert "\n" not in str(error.value)


CASES = yaml.safe_load(Path(__file__).with_name("damaged_files.yaml").read_text())


@pytest.mark.parametrize(("name", "file", "old", "new", "says"), CASES)
def test_damaged_files_are_refused_in_one_line(
    root: Path, name: str, file: str, old: str | None, new: str | None, says: str
) -> None:
    """A part of a file is replaced once, or the whole; without new text it is gone."""
    SETS[name].write(root)
    path = root / file
    content = path.read_bytes().decode()
    assert old is None or old in content
    path.unlink()
    if new is not None:
        text = new if old is None else content.replace(old, new, 1)
        path.write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match=says) as error:
        SETS[name].config.make()
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
