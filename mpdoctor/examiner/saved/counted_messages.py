"""Protocol buffers, counted before they are parsed: two bytes make an empty message, and a parser makes a hundred or
two of each."""

from __future__ import annotations

from typing import Any, Dict

from mpdoctor.examiner.exceptions import Unusable

MOST_MESSAGES = 4_000_000  # the SavedModel of an EfficientNetB0 holds 300,000
MOST_FIELDS = 12_000_000
NUMBER, EIGHT_BYTES, SIZED, GROUP, END_OF_GROUP, FOUR_BYTES = range(6)  # as the lowest bits of a field's tag say
SIZES = {FOUR_BYTES: 4, EIGHT_BYTES: 8}  # of a field's number

Table = Dict[int, Any]  # number of a field that holds messages -> the table of these


def parsed(content: bytes, message_class: Any, shown_as: str, advice: str) -> Any:
    """The message in these bytes. `shown_as` is the file's name, and `advice` what to do about it, for an error.

    Raises Unusable where there are more messages or fields in it than in any model, DecodeError where it is none."""
    messages, fields = counted(content, message_class.DESCRIPTOR)
    for count, most, what in ((messages, MOST_MESSAGES, "messages"), (fields, MOST_FIELDS, "fields")):
        if count > most:
            raise Unusable(
                f"{shown_as} holds more than {most:,} {what}, which is as many as mpdoctor reads: no model has so "
                f"many. {advice}"
            )
    message = message_class()
    message.ParseFromString(content)
    return message


def counted(content: bytes, descriptor: Any) -> tuple[int, int]:
    """(messages, fields) that a parser makes of these bytes, until there are too many. Of damaged bytes, what stands
    before the damage."""
    left = [(0, len(content), _table(descriptor, {}))]
    messages = fields = 0
    while left:
        place, end, table = left.pop()
        try:
            while place < end:
                fields += 1
                if fields > MOST_FIELDS or messages > MOST_MESSAGES:
                    return messages, fields
                tag = content[place]
                place += 1
                if tag > 127:
                    tag, place = varint(content, place - 1)
                kind = tag & 7
                if kind == SIZED:
                    size = content[place]
                    place += 1
                    if size > 127:
                        size, place = varint(content, place - 1)
                    below = table.get(tag >> 3)
                    if below is not None:
                        messages += 1
                        if size:
                            left.append((place, min(place + size, end), below))
                    place += size
                elif kind == NUMBER:
                    while content[place] > 127:
                        place += 1
                    place += 1
                elif kind in SIZES:
                    place += SIZES[kind]
                elif kind > FOUR_BYTES:
                    break
        except IndexError:  # cut off
            continue
    return messages, fields


def varint(content: bytes, place: int) -> tuple[int, int]:
    """(the number that begins at this place, the place behind it). Raises IndexError where the bytes end before it."""
    number = shift = 0
    while True:
        byte = content[place]
        place += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128 or shift > 63:
            return number, place


def _table(descriptor: Any, known: dict[str, Table]) -> Table:
    """A message may hold others of its own kind."""
    if descriptor.full_name not in known:
        table: Table = {}
        known[descriptor.full_name] = table
        for field in descriptor.fields:
            if field.message_type is not None:
                table[field.number] = _table(field.message_type, known)
    return known[descriptor.full_name]
