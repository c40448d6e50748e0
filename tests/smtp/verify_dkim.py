"""Verifies the DKIM signatures of mails with dkimpy, as a receiver does at the time of their Date.

Standard input is a JSON object with the `mails`, the DNS `name` of the only record there is, and the `record`.
Standard output is a JSON array with an object for each mail: whether the signature is `valid`, and its `tags`.
"""

import email
import email.utils
import json
import sys
import time

import dkim

NO_DATE = "Fri, 01 Jan 2100 00:00:00 +0000"


def verdict(mail, records):
    date = email.utils.parsedate_to_datetime(email.message_from_string(mail)["date"] or NO_DATE)
    # The clock of the tests is not that of this machine.
    time.time = date.timestamp
    verifier = dkim.DKIM(mail.encode("ascii"))
    try:
        valid = verifier.verify(dnsfunc=lambda name, timeout: records.get(name.decode()))
    except dkim.DKIMException:
        valid = False
    tags = {name.decode(): "".join(value.decode().split()) for name, value in verifier.signature_fields.items()}
    return {"valid": valid, "tags": tags}


request = json.load(sys.stdin)
records = {request["name"] + ".": request["record"].encode()}
print(json.dumps([verdict(mail, records) for mail in request["mails"]]))
