"""usage: validate_sbom.py FILE. Compares a bill of materials with the schema of CycloneDX 1.6, and its parts with each other."""

import json
import pathlib
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

text = pathlib.Path(sys.argv[1]).read_text()
if mistake := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
    sys.exit(str(mistake))

bill = json.loads(text)
named = {component["bom-ref"] for component in [bill["metadata"]["component"], *bill["components"]]}
refs = {entry["ref"] for entry in bill["dependencies"]}
used = {ref for entry in bill["dependencies"] for ref in entry["dependsOn"]}
if named != refs or used != named - {bill["metadata"]["component"]["bom-ref"]}:
    sys.exit("The graph of dependencies and the list of components do not match.")
names = {component["name"] for component in bill["components"]}
if missing := {"hyper", "rustls", "sqlx-sqlite", "sqlite"} - names:
    sys.exit(f"The bill lacks {missing}.")
if surplus := {"proptest", "serde_derive", "cc"} & names:
    sys.exit(f"The bill has {surplus}, which are not in the binary.")
