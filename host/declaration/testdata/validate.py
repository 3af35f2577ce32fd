"""Judges documents by a JSON Schema: the tests call it.

Standard input is {"schema": …, "documents": ["…", …]}; for each document, a
text, standard output gets a line: "valid", or "invalid PATH: why". It ends
with 3 when there is no validator.
"""

import json
import sys

try:
    import jsonschema

    jsonschema.Draft202012Validator
except (ImportError, AttributeError):
    sys.exit(3)

work = json.load(sys.stdin)
jsonschema.Draft202012Validator.check_schema(work["schema"])
validator = jsonschema.Draft202012Validator(work["schema"])
for document in work["documents"]:
    error = jsonschema.exceptions.best_match(validator.iter_errors(json.loads(document)))
    print("valid" if error is None else "invalid %s: %.200s" % (error.json_path, error.message.replace("\n", " ")))
