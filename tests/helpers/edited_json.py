"""A JSON file edited by hand: every value of it in turn is another one, or gone."""

import copy

GONE = ...
WRONG = (GONE, None, -1, "text", 1e308, [], {"a": 1}, ["text"])


def edits(value, wrong=WRONG):
    """Where an edit is, what is there instead, and the edited whole; of a list the first two are enough."""
    for place in _places(value):
        for each in wrong:
            edited = copy.deepcopy(value)
            inner = edited
            for key in place[:-1]:
                inner = inner[key]
            if each is GONE:
                del inner[place[-1]]
            else:
                inner[place[-1]] = each
            yield place, each, edited


def _places(value, above=()):
    inside = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, each in inside:
        yield (*above, key)
        yield from _places(each, (*above, key))
