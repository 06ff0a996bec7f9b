"""What Python's xml.etree reads in MARCXML files: one JSON line a file.

{"file": ..., "error": null or text, "records": [[leader or null, [[tag or null, text], ...]], ...]}

The text of a data field is indicators, then 0x1F, code and text of each subfield, as in ISO 2709. Indicators
that are padded with blanks and codes of several characters are cut to one.
"""

import json
import sys
import xml.etree.ElementTree as ET


def local(element):
    return element.tag.split("}")[-1]


def field(element):
    if local(element) == "controlfield":
        return [element.get("tag"), "".join(element.itertext())]
    text = ((element.get("ind1") or "").rstrip() or " ") + (element.get("ind2") or " ")
    for subfield in element:
        if local(subfield) == "subfield":
            text += "\x1f" + (subfield.get("code") or "")[:1]
            text += "".join(subfield.itertext())
    return [element.get("tag"), text]


def records(root):
    for element in root.iter():
        if local(element) == "record":
            parts = [e for e in element if local(e) in ("leader", "controlfield", "datafield")]
            if parts:
                leaders = ["".join(e.itertext()) for e in parts if local(e) == "leader"]
                fields = [field(e) for e in parts if local(e) != "leader"]
                yield [leaders[-1] if leaders else None, fields]


for path in sys.argv[1:]:
    answer = {"file": path, "error": None, "records": []}
    try:
        answer["records"] = list(records(ET.parse(path).getroot()))
    except (ET.ParseError, ValueError) as error:
        answer["error"] = str(error)
    print(json.dumps(answer))
