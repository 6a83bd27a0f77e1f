"""How much a test does: `make test` runs a part that finds most mistakes, `make test-all` all of it."""

from hypothesis import settings


def thorough(few, many):
    """`many` in `make test-all`, which loads hypothesis's profile `long`; `few` otherwise."""
    return many if settings.get_current_profile_name().startswith("long") else few
