"""`dendritree predict`: predictions for new rows or images, by a model that `dendritree fit` or `tune` wrote."""

from __future__ import annotations

import csv
import gzip
import io
import sys
import warnings
from dataclasses import replace
from pathlib import Path

from dendritree.errors import OptionError
from dendritree.files import write_whole

from .messages import tell
from .options import Arguments, Option


def run(arguments: Arguments) -> None:
    """Predict rows of a table with a model of `fit`, or images with one of `tune`."""
    from ..data.image_folder import find_images

    if images := find_images(Path(arguments.table)):
        _predict_images(arguments, images)
    else:
        _predict_table(arguments)


def _predict_images(arguments: Arguments, images: list[Path]) -> None:
    """Print or write a CSV file: file, prediction, probability."""
    from ..studies.fair import ImagePrediction, predict_images

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(ImagePrediction._fields)
    writer.writerows(predict_images(arguments.model, images))
    if arguments.out is None:
        sys.stdout.write(text.getvalue())
    else:
        write_whole(Path(arguments.out), text.getvalue(), "--out")
        print(f"wrote {arguments.out}: {len(images):,} images")


def _predict_table(arguments: Arguments) -> None:
    from ..data.tables.reading import PARQUET_ENDINGS, read_like
    from ..data.tables.schema import read_overrides
    from ..studies.table.table_model import UnknownCellsWarning, load_table_model

    out = None if arguments.out is None else Path(arguments.out)
    table = Path(arguments.table)
    if out is not None and out.exists() and (not out.is_file() or (table.exists() and out.samefile(table))):
        raise OptionError(f"--out must be a file other than the table: got {out}")
    if out is not None and Path(arguments.model).resolve() in out.resolve().parents:
        raise OptionError(f"--out must be outside the folder of the model: got {out}")
    model = load_table_model(arguments.model)
    given = read_overrides(arguments.schema)
    if "columns" in given:
        raise OptionError("--schema of predict must not have 'columns': their types are those of the training table")
    schema = replace(model.encoding.schema, **given)
    model = replace(model, encoding=replace(model.encoding, schema=schema))
    file = read_like(table, schema, [column.name for column in model.encoding.columns])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnknownCellsWarning)
        predicted = model.predict(file.frame, strict=arguments.strict)
    for notice in caught:
        tell(notice.message)
    evaluated = model.evaluate(predicted)
    if out is not None and out.suffix in PARQUET_ENDINGS:
        write_whole(out, predicted.to_parquet(index=False), "--out")
    else:
        if model.task == "regression":
            predicted[model.prediction_name] = [float(f"{each:.6g}") for each in predicted[model.prediction_name]]
        content = file.to_bytes(predicted, decimal=schema.decimal)
        if out is None:
            sys.stdout.write(content.decode(file.encoding))
        else:
            write_whole(out, gzip.compress(content) if out.suffix == ".gz" else content, "--out")
    if out is not None:
        print(f"wrote {out}: {len(predicted):,} rows")
    if evaluated:
        tell(evaluated)


OPTIONS = [
    Option("model MODEL", "folder written by `dendritree fit`, or by `dendritree tune` for images"),
    Option("table TABLE", "a CSV or Parquet file with the same columns; an image, or a folder of images"),
    Option("--out FILE", "file for rows and predictions, in the table's format (default: print them)"),
    Option("--schema FILE", "JSON file with the file's format, if it differs from the training table's"),
    Option("--strict", "reject values not seen in training"),
]
EXAMPLES = (
    "dendritree predict model new.csv --out predictions.csv\ndendritree predict tuned photos/ --out predictions.csv"
)
